import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/** kafka-clients as a peer: "load PATH", then "run WORK PASSES" -> "wall_ns cpu_ns records check". */
public class Peer {
    private static final BufferSupplier SUPPLIER = BufferSupplier.create();
    private static byte[] data;
    private static List<List<Plain>> batches;
    private static long count, check;

    private static final class Plain {
        final long timestamp;
        final byte[] key, value;
        final Header[] headers;

        Plain(Record r) {
            timestamp = r.timestamp();
            key = bytes(r.key());
            value = bytes(r.value());
            headers = r.headers();
        }

        private static byte[] bytes(ByteBuffer b) {
            if (b == null) return null;
            byte[] copy = new byte[b.remaining()];
            b.get(copy);
            return copy;
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("load")) {
                data = Files.readAllBytes(Path.of(words[1]));
                batches = null;
                System.out.println("ok");
                continue;
            }
            String[] work = words[1].split(":");               // message-decode:FetchRequest:12
            if (work[0].startsWith("message")) prepare(work[1], Short.parseShort(work[2]));
            if (words[1].equals("encode") && batches == null) prepare();
            long wall = System.nanoTime(), busy = cpu();
            for (int i = Integer.parseInt(words[2]); i > 0; i--) {
                count = check = 0;
                switch (work[0]) {
                    case "decode": decode(); break;
                    case "encode": encode(); break;
                    case "crc32c-16k": crc(16 << 10); break;
                    case "crc32c-1m": crc(1 << 20); break;
                    case "message-decode": decodeMessages(); break;
                    case "message-encode": encodeMessages(); break;
                    default: throw new IllegalArgumentException("unknown work");
                }
            }
            System.out.println((System.nanoTime() - wall) + " " + (cpu() - busy) + " " + count + " " + check);
        }
    }

    /** CPU nanoseconds of all threads, the garbage collector's too (OperatingSystemMXBean counts in steps of 10 ms). */
    private static long cpu() throws Exception {
        long sum = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        String own = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
        for (File thread : new File("/proc/self/task").listFiles()) {
            if (thread.getName().equals(own)) continue;        // its entry is not up to date while it runs
            try {
                sum += Long.parseLong(Files.readString(thread.toPath().resolve("schedstat")).split(" ")[0]);
            } catch (IOException e) {
                // the thread has ended
            }
        }
        return sum;
    }

    /** As the consumer's CompletedFetch: the checksum, then the streaming iterator with a reused buffer. */
    private static void decode() {
        long n = 0, sum = 0;
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            try (CloseableIterator<Record> records = batch.streamingIterator(SUPPLIER)) {
                while (records.hasNext()) {
                    Record r = records.next();
                    ByteBuffer key = r.key(), value = r.value();
                    n++;
                    sum += r.offset() + r.timestamp() + (key == null ? 0 : key.remaining()) + (value == null ? 0 : value.remaining());
                }
            }
        }
        count = n;
        check = sum;
    }

    private static void prepare() {
        batches = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            List<Plain> all = new ArrayList<>();
            for (Record r : batch) all.add(new Plain(r));
            batches.add(all);
        }
        room = ByteBuffer.allocate(2 << 20);
    }

    private static ByteBuffer room;

    /** As the producer: a builder over a reused buffer. */
    private static void encode() {
        long n = 0, sum = 0;
        for (List<Plain> batch : batches) {
            room.clear();
            MemoryRecordsBuilder builder = MemoryRecords.builder(room, Compression.NONE, TimestampType.CREATE_TIME, 0L);
            for (Plain r : batch) builder.append(r.timestamp, r.key, r.value, r.headers);
            sum += builder.build().sizeInBytes();
            n += batch.size();
        }
        count = n;
        check = sum;
    }

    private interface Reading {
        Message read(Readable from, short version);
    }

    private static final int INNER = 20;
    private static Reading reading;
    private static Message message;
    private static short version;
    private static Object kept;

    private static void prepare(String name, short number) {
        switch (name) {
            case "MetadataResponse": reading = MetadataResponseData::new; break;
            case "FetchRequest": reading = FetchRequestData::new; break;
            case "ProduceRequest": reading = ProduceRequestData::new; break;
            case "ApiVersionsResponse": reading = ApiVersionsResponseData::new; break;
            case "HeartbeatRequest": reading = HeartbeatRequestData::new; break;
            case "FetchResponse": reading = FetchResponseData::new; break;
            default: throw new IllegalArgumentException(name);
        }
        version = number;
        message = reading.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
        room = ByteBuffer.allocate(2 << 20);
    }

    private static void decodeMessages() {
        for (int i = 0; i < INNER; i++) kept = reading.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
        count = INNER;
    }

    /** As AbstractRequest: the size, then the bytes; records are written from their own buffer, not copied. */
    private static void encodeMessages() {
        for (int i = 0; i < INNER; i++) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            check += message.size(cache, version);
            room.clear();
            message.write(new ByteBufferAccessor(room), cache, version);
        }
        count = INNER;
    }

    private static void crc(int size) {
        for (int at = 0; at + size <= data.length; at += size) {
            CRC32C crc = new CRC32C();
            crc.update(data, at, size);
            check += crc.getValue();
            count++;
        }
    }
}
