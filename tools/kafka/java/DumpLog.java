import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

import org.apache.kafka.tools.DumpLogSegments;

/** Runs kafka-dump-log for each line of stdin (its arguments, tabs between them): exit code, size of stdout, stdout. */
public class DumpLog {
    public static void main(String[] ignored) throws Exception {
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            int code = 0;
            try {
                DumpLogSegments.main(line.split("\t"));
            } catch (Throwable failure) {
                code = 1;
            }
            System.out.flush();
            out.write((code + " " + printed.size() + "\n").getBytes(StandardCharsets.UTF_8));
            printed.writeTo(out);
        }
        out.flush();
    }
}
