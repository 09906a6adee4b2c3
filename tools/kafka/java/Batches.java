import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecord;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/** Record batches: "read" tells every field of every batch and record, "build" writes one batch (or a set of old entries). */
public class Batches {
    public static ObjectNode answer(String what, JsonNode ask) throws Exception {
        switch (what) {
            case "read": return read(Oracle.unhex(ask.get("hex").asText()), ask.path("stream").asBoolean(true));
            case "build": return build(ask);
            case "compact": return compact(ask);
            default: throw new IllegalArgumentException("no such command: " + what);
        }
    }

    static ObjectNode read(byte[] data, boolean stream) {
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(data));
        ArrayNode batches = answer.putArray("batches");
        answer.put("batchIteration", "ok");
        int position = 0;
        try {
            for (MutableRecordBatch batch : records.batches()) {
                batches.add(batch(batch, data, position, stream));
                position += batch.sizeInBytes();
            }
        } catch (Throwable e) {
            answer.put("batchIteration", Oracle.text(e));
        }
        answer.put("validBytes", position);
        return answer;
    }

    static ObjectNode batch(MutableRecordBatch b, byte[] data, int position, boolean stream) {
        ObjectNode o = Oracle.MAPPER.createObjectNode();
        o.put("position", position).put("sizeInBytes", b.sizeInBytes()).put("magic", b.magic());
        try {
            o.put("isValid", b.isValid());
        } catch (Throwable e) {
            o.put("isValid", false);
        }
        try {
            b.ensureValid();
            o.put("ensureValid", "ok");
        } catch (Throwable e) {
            o.put("ensureValid", Oracle.text(e));
        }
        try {
            header(o, b, data, position);
        } catch (Throwable e) {
            o.put("headerError", Oracle.text(e));
        }
        ArrayNode records = o.putArray("records");
        try {
            for (Iterator<Record> it = b.iterator(); it.hasNext(); ) records.add(record(it.next(), b));
            o.put("iterate", "ok");
        } catch (Throwable e) {
            o.put("iterate", Oracle.text(e));
        }
        if (stream) {
            int n = 0;
            try (CloseableIterator<Record> it = b.streamingIterator(BufferSupplier.NO_CACHING)) {
                for (; it.hasNext(); n++) it.next();
                o.put("streaming", "ok");
            } catch (Throwable e) {
                o.put("streaming", Oracle.text(e));
            }
            o.put("streamingRecords", n);
        }
        try {
            if (b.isControlBatch()) o.set("control", control(b));
        } catch (Throwable e) {
            o.put("control", Oracle.text(e));
        }
        return o;
    }

    static void header(ObjectNode o, MutableRecordBatch b, byte[] data, int position) {
        o.put("baseOffset", b.baseOffset()).put("lastOffset", b.lastOffset()).put("nextOffset", b.nextOffset());
        o.put("crc", b.checksum()).put("compression", b.compressionType().name).put("timestampType", b.timestampType().name);
        o.put("maxTimestamp", b.maxTimestamp()).put("producerId", b.producerId()).put("producerEpoch", b.producerEpoch());
        o.put("baseSequence", b.baseSequence()).put("lastSequence", b.lastSequence());
        o.put("partitionLeaderEpoch", b.partitionLeaderEpoch()).put("isTransactional", b.isTransactional());
        o.put("isControlBatch", b.isControlBatch());
        if (b.deleteHorizonMs().isPresent()) o.put("deleteHorizonMs", b.deleteHorizonMs().getAsLong());
        else o.putNull("deleteHorizonMs");
        if (b.countOrNull() == null) o.putNull("count");
        else o.put("count", b.countOrNull());
        if (b.magic() >= 2) {
            ByteBuffer raw = ByteBuffer.wrap(data);
            o.put("length", raw.getInt(position + 8)).put("attributes", raw.getShort(position + 21) & 0xffff);
            o.put("lastOffsetDelta", raw.getInt(position + 23)).put("rawBaseTimestamp", raw.getLong(position + 27));
        }
    }

    static ObjectNode record(Record r, RecordBatch b) {
        ObjectNode o = Oracle.MAPPER.createObjectNode();
        o.put("offset", r.offset()).put("timestamp", r.timestamp());
        o.put("timestampType", b.timestampType().name);            // as a consumer tells it
        o.put("sequence", r.sequence());
        if (r instanceof DefaultRecord) o.put("attributes", ((DefaultRecord) r).attributes());
        o.put("key", hex(r.key())).put("value", hex(r.value()));
        ArrayNode headers = o.putArray("headers");
        for (Header h : r.headers()) {
            ArrayNode one = headers.addArray().add(h.key());
            if (h.value() == null) one.addNull();
            else one.add(Oracle.hex(h.value()));
        }
        return o;
    }

    static String hex(ByteBuffer b) {
        if (b == null) return null;
        byte[] bytes = new byte[b.remaining()];
        b.duplicate().get(bytes);
        return Oracle.hex(bytes);
    }

    static ArrayNode control(RecordBatch b) {
        ArrayNode all = Oracle.MAPPER.createArrayNode();
        for (Record r : b) {
            ObjectNode o = all.addObject();
            ControlRecordType type = ControlRecordType.parse(r.key());
            o.put("typeId", ControlRecordType.parseTypeId(r.key())).put("type", type.name());
            ByteBuffer v = r.value();
            short version = v.duplicate().getShort();
            switch (type) {
                case COMMIT:
                case ABORT:
                    o.put("coordinatorEpoch", EndTransactionMarker.deserialize(r).coordinatorEpoch());
                    break;
                case LEADER_CHANGE:
                    o.set("message", LeaderChangeMessageJsonConverter.write(new LeaderChangeMessage(new ByteBufferAccessor(v), version), version));
                    break;
                case SNAPSHOT_HEADER:
                    o.set("message", SnapshotHeaderRecordJsonConverter.write(new SnapshotHeaderRecord(new ByteBufferAccessor(v), version), version));
                    break;
                case SNAPSHOT_FOOTER:
                    o.set("message", SnapshotFooterRecordJsonConverter.write(new SnapshotFooterRecord(new ByteBufferAccessor(v), version), version));
                    break;
                case KRAFT_VERSION:
                    o.set("message", KRaftVersionRecordJsonConverter.write(new KRaftVersionRecord(new ByteBufferAccessor(v), version), version));
                    break;
                case KRAFT_VOTERS:
                    o.set("message", VotersRecordJsonConverter.write(new VotersRecord(new ByteBufferAccessor(v), version), version));
                    break;
                default:
                    o.putNull("message");
            }
        }
        return all;
    }

    static Compression codec(JsonNode ask) {
        String name = ask.path("codec").asText("none");
        if (!ask.hasNonNull("level")) return Compression.of(name).build();
        int level = ask.get("level").asInt();
        switch (name) {
            case "gzip": return Compression.gzip().level(level).build();
            case "lz4": return Compression.lz4().level(level).build();
            case "zstd": return Compression.zstd().level(level).build();
            default: return Compression.of(name).build();
        }
    }

    static long number(JsonNode ask, String field, long otherwise) {
        return ask.hasNonNull(field) ? ask.get(field).asLong() : otherwise;
    }

    static ObjectNode build(JsonNode ask) throws Exception {
        byte magic = (byte) number(ask, "magic", 2);
        String type = ask.path("timestamp_type").asText(magic == 0 ? "none" : "create");
        TimestampType timestamps = type.equals("log_append") ? TimestampType.LOG_APPEND_TIME
                : type.equals("create") ? TimestampType.CREATE_TIME : TimestampType.NO_TIMESTAMP_TYPE;
        long horizon = number(ask, "delete_horizon", -1);
        long base = number(ask, "base_offset", 0);
        boolean control = ask.path("control").asBoolean(false);
        ByteBufferOutputStream out = new ByteBufferOutputStream(4096);
        if (ask.path("records").size() == 0 && magic == 2) {        // what the log cleaner leaves of an empty batch
            ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
            DefaultRecordBatch.writeEmptyHeader(empty, magic, number(ask, "producer_id", -1), (short) number(ask, "producer_epoch", -1),
                    (int) number(ask, "base_sequence", -1), base, number(ask, "last_offset", base), (int) number(ask, "partition_leader_epoch", -1),
                    timestamps, number(ask, "max_timestamp", -1), ask.path("transactional").asBoolean(false), control);
            return Oracle.MAPPER.createObjectNode().put("hex", Oracle.hex(empty.array(), 0, DefaultRecordBatch.RECORD_BATCH_OVERHEAD));
        }
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(out, magic, codec(ask), timestamps, base,
                timestamps == TimestampType.LOG_APPEND_TIME ? number(ask, "append_time", -1) : -1, number(ask, "producer_id", -1),
                (short) number(ask, "producer_epoch", -1), (int) number(ask, "base_sequence", -1), ask.path("transactional").asBoolean(false),
                control, (int) number(ask, "partition_leader_epoch", -1), Integer.MAX_VALUE, horizon);
        for (JsonNode r : ask.path("records")) {
            byte[] key = bytes(r.get("key")), value = bytes(r.get("value"));
            Header[] headers = new Header[r.path("headers").size()];
            for (int i = 0; i < headers.length; i++)
                headers[i] = new RecordHeader(r.get("headers").get(i).get(0).asText(), bytes(r.get("headers").get(i).get(1)));
            long timestamp = magic == 0 ? -1 : r.get("timestamp").asLong();
            SimpleRecord record = new SimpleRecord(timestamp, key, value, headers);
            if (control) builder.appendControlRecordWithOffset(r.get("offset").asLong(), record);
            else builder.appendWithOffset(r.get("offset").asLong(), record);
        }
        if (ask.hasNonNull("last_offset")) builder.overrideLastOffset(ask.get("last_offset").asLong());
        ByteBuffer built = builder.build().buffer().duplicate();
        byte[] bytes = new byte[built.remaining()];
        built.get(bytes);
        return Oracle.MAPPER.createObjectNode().put("hex", Oracle.hex(bytes));
    }

    static byte[] bytes(JsonNode hex) {
        return hex == null || hex.isNull() ? null : Oracle.unhex(hex.asText());
    }

    /** What the log cleaner would leave: {"hex", "keep": [offsets], "horizon"}. */
    static ObjectNode compact(JsonNode ask) throws Exception {
        java.util.Set<Long> keep = new java.util.HashSet<>();
        for (JsonNode n : ask.get("keep")) keep.add(n.asLong());
        long horizon = number(ask, "horizon", -1);
        ByteBuffer target = ByteBuffer.allocate(1 << 20);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Oracle.unhex(ask.get("hex").asText())));
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(0, horizon) {
            @Override protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(batch.magic() < 2 ? BatchRetention.DELETE_EMPTY : BatchRetention.RETAIN_EMPTY, horizon >= 0);
            }
            @Override protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return keep.contains(record.offset());
            }
        };
        MemoryRecords.FilterResult result = null;
        for (java.lang.reflect.Method method : MemoryRecords.class.getMethods()) {      // its arguments differ between releases
            if (!method.getName().equals("filterTo")) continue;
            Object[] arguments = new Object[method.getParameterCount()];
            for (int i = 0; i < arguments.length; i++) {
                Class<?> type = method.getParameterTypes()[i];
                arguments[i] = type == ByteBuffer.class ? target : type == int.class ? (Object) Integer.MAX_VALUE
                        : type == BufferSupplier.class ? BufferSupplier.NO_CACHING : type.isInstance(filter) ? filter
                        : new org.apache.kafka.common.TopicPartition("topic", 0);
            }
            result = (MemoryRecords.FilterResult) method.invoke(records, arguments);
        }
        ByteBuffer out = result.outputBuffer().duplicate();
        out.flip();
        byte[] bytes = new byte[out.remaining()];
        out.get(bytes);
        return Oracle.MAPPER.createObjectNode().put("hex", Oracle.hex(bytes));
    }
}
