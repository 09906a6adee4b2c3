import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** Metadata images: records that make one, and the records that Kafka's own writer makes of it at a metadata.version. */
public class Images {
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    /**
     * image: records (hex), level, eligible (whether eligible leader replicas are enabled), each (whether an image is
     * made after each record, as from a log; else one of all, as from a snapshot) -> records (hex), losses.
     */
    public static ObjectNode answer(String what, JsonNode ask) throws Exception {
        if (!what.equals("image")) return null;
        MetadataDelta delta = new MetadataDelta.Builder().build();
        boolean each = ask.get("each").asBoolean();
        for (JsonNode record : ask.get("records")) {
            if (each) delta = new MetadataDelta.Builder().setImage(delta.apply(MetadataProvenance.EMPTY)).build();
            byte[] bytes = Oracle.unhex(record.asText());
            delta.replay(SERDE.read(new ByteBufferAccessor(java.nio.ByteBuffer.wrap(bytes)), bytes.length).message());
        }
        MetadataImage image = delta.apply(MetadataProvenance.EMPTY);
        List<String> losses = new ArrayList<>();
        MetadataVersion level = MetadataVersion.fromFeatureLevel((short) ask.get("level").asInt());
        ImageWriterOptions.Builder options = builder(level, ask.get("eligible").asBoolean());
        options.setLossHandler(loss -> losses.add(loss.loss()));
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, options.build());
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        ArrayNode records = answer.putArray("records");
        for (ApiMessageAndVersion record : writer.records()) records.add(hex(record));
        ArrayNode lost = answer.putArray("losses");
        for (String loss : losses) lost.add(loss);
        return answer;
    }

    /** From 4.0 on the constructor takes the level, and the writer asks about eligible leader replicas. */
    private static ImageWriterOptions.Builder builder(MetadataVersion level, boolean eligible) throws Exception {
        Class<ImageWriterOptions.Builder> type = ImageWriterOptions.Builder.class;
        ImageWriterOptions.Builder options;
        try {
            options = type.getConstructor(MetadataVersion.class).newInstance(level);
        } catch (NoSuchMethodException e) {
            options = type.getConstructor().newInstance().setMetadataVersion(level);
        }
        try {
            type.getMethod("setEligibleLeaderReplicasEnabled", boolean.class).invoke(options, eligible);
        } catch (NoSuchMethodException e) {
            // by the level alone
        }
        return options;
    }

    private static String hex(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        java.nio.ByteBuffer bytes = java.nio.ByteBuffer.allocate(SERDE.recordSize(record, cache));
        SERDE.write(record, cache, new ByteBufferAccessor(bytes));
        return Oracle.hex(bytes.array());
    }
}
