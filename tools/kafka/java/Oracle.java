import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.io.Writer;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Answers one JSON object a line with one JSON object a line: {"do": command, ...} -> its answer, or {"error": "class: text"}. */
public class Oracle {
    static final ObjectMapper MAPPER = new ObjectMapper();
    private static final String[] OPTIONAL = {"Images", "Batches"};  // compiled for the releases whose classes they know
    private static final List<Method> optional = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        Writer out = new OutputStreamWriter(System.out, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(System.err));
        for (String name : OPTIONAL) {
            try {
                optional.add(Class.forName(name).getMethod("answer", String.class, JsonNode.class));
            } catch (ClassNotFoundException e) {
                // its commands are not known then
            }
        }
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.write(MAPPER.writeValueAsString(answer(MAPPER.readTree(line))));
            out.write('\n');
            out.flush();
        }
    }

    static ObjectNode answer(JsonNode ask) {
        try {
            String what = ask.get("do").asText();
            switch (what) {
                case "many": {
                    ObjectNode all = MAPPER.createObjectNode();
                    ArrayNode answers = all.putArray("answers");
                    for (JsonNode one : ask.get("asks")) answers.add(answer(one));
                    return all;
                }
                case "messages": return Messages.list();
                case "decode": return Messages.decode(ask);
                case "encode": return Messages.encode(ask);
                case "random": return Messages.random(ask);
                default:
                    for (Method method : optional) {
                        ObjectNode found = (ObjectNode) method.invoke(null, what, ask);
                        if (found != null) return found;
                    }
                    throw new IllegalArgumentException("no such command for this release: " + what);
            }
        } catch (InvocationTargetException e) {
            return MAPPER.createObjectNode().put("error", text(e.getCause()));
        } catch (Throwable e) {
            return MAPPER.createObjectNode().put("error", text(e));
        }
    }

    static String text(Throwable e) {
        return e.getClass().getName() + ": " + e.getMessage();
    }

    static byte[] unhex(String s) {
        byte[] b = new byte[s.length() / 2];
        for (int i = 0; i < b.length; i++)
            b[i] = (byte) (Character.digit(s.charAt(2 * i), 16) << 4 | Character.digit(s.charAt(2 * i + 1), 16));
        return b;
    }

    static String hex(byte[] b, int from, int to) {
        char[] c = new char[2 * (to - from)];
        for (int i = from, j = 0; i < to; i++) {
            c[j++] = Character.forDigit(b[i] >> 4 & 15, 16);
            c[j++] = Character.forDigit(b[i] & 15, 16);
        }
        return new String(c);
    }

    static String hex(byte[] b) {
        return hex(b, 0, b.length);
    }
}
