import java.io.*;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/** Reads lines "codec magic hex", prints what Kafka's own stream makes of each: "ok length md5" or "error text". */
public class Inflate {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in), 1 << 20);
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16));
        HexFormat hex = HexFormat.of();
        BufferSupplier buffers = BufferSupplier.create();
        for (String line; (line = lines.readLine()) != null;) {
            String[] part = line.split(" ", -1);
            try {
                Compression codec = Compression.of(CompressionType.forId(Integer.parseInt(part[0]))).build();
                ByteBuffer payload = ByteBuffer.wrap(hex.parseHex(part[2]));
                InputStream in = codec.wrapForInput(payload, Byte.parseByte(part[1]), buffers);
                MessageDigest digest = MessageDigest.getInstance("MD5");
                byte[] chunk = new byte[1000];
                long total = 0;
                for (int n; (n = in.read(chunk)) > 0; total += n) digest.update(chunk, 0, n);
                out.println("ok " + total + " " + hex.formatHex(digest.digest()));
            } catch (Throwable t) {
                out.println("error " + t.toString().replace('\n', ' '));
            }
        }
        out.flush();
    }
}
