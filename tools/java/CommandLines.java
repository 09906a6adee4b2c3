import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.security.Permission;

/**
 * Runs a main class (the first argument) for each line of stdin, a command line with tabs between its arguments, in one
 * JVM. Writes a line of JSON for each: exit, stdout, stderr as they were when it ended; uncaught is the exception that
 * main threw. Needs -Djava.security.manager=allow: an exit ends the command line, not the JVM.
 */
public class CommandLines {
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    private static int code;
    private static String[] texts; // at the first exit: what catches the exception of it may print more

    private static void ended(int status) {
        if (texts == null) {
            System.out.flush();
            System.err.flush();
            code = status;
            texts = new String[] {OUT.toString(StandardCharsets.UTF_8), ERR.toString(StandardCharsets.UTF_8)};
        }
    }

    private static String quoted(String text) {
        StringBuilder made = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c < ' ' || c > '~' || c == '"' || c == '\\') {
                made.append(String.format("\\u%04x", (int) c));
            } else {
                made.append(c);
            }
        }
        return made.append('"').toString();
    }

    @SuppressWarnings("removal")
    public static void main(String[] names) throws Exception {
        PrintStream answers = System.out;
        System.setSecurityManager(new SecurityManager() {
            @Override
            public void checkPermission(Permission permission) {
            }

            @Override
            public void checkPermission(Permission permission, Object context) {
            }

            @Override
            public void checkExit(int status) {
                ended(status);
                throw new SecurityException();
            }
        });
        Method main = Class.forName(names[0]).getMethod("main", String[].class);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            OUT.reset();
            ERR.reset();
            texts = null;
            System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
            String uncaught = "null";
            try {
                main.invoke(null, (Object) (line.isEmpty() ? new String[0] : line.split("\t", -1)));
                ended(0);
            } catch (InvocationTargetException thrown) {
                if (texts == null) {
                    uncaught = quoted(String.valueOf(thrown.getCause()));
                }
                ended(1);
            }
            answers.println("{\"exit\": " + code + ", \"stdout\": " + quoted(texts[0]) + ", \"stderr\": "
                + quoted(texts[1]) + ", \"uncaught\": " + uncaught + "}");
            answers.flush();
        }
    }
}
