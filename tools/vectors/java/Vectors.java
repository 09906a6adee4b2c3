import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.io.Writer;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.zip.CRC32;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.utils.internals.ByteUtils;
import org.apache.kafka.common.utils.internals.Crc32C;

/**
 * What the generator of test vectors asks beside the oracle's own commands (Oracle.java, Messages.java, Batches.java).
 * What came later than 2.8 goes by reflection; imports are the newest release's, and tools/kafka/classes.py puts those that moved
 * back for older ones. So one source serves every release since.
 */
public class Vectors {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        Writer out = new OutputStreamWriter(System.out, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(System.err));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.write(Oracle.MAPPER.writeValueAsString(answer(Oracle.MAPPER.readTree(line))));
            out.write('\n');
            out.flush();
        }
    }

    static ObjectNode answer(JsonNode ask) {
        try {
            switch (ask.get("do").asText()) {
                case "many": {
                    ObjectNode all = Oracle.MAPPER.createObjectNode();
                    ArrayNode answers = all.putArray("answers");
                    for (JsonNode one : ask.get("asks")) answers.add(answer(one));
                    return all;
                }
                case "apis": return apis();
                case "encode": return encode(ask);
                case "make": return make(ask);
                case "write_at": return writeAt(ask);
                case "frame": return frame(ask);
                case "primitives": return primitives(ask);
                case "read":
                case "build":
                case "compact":                                    // Batches.java is compiled for 3.9 and newer
                    return (ObjectNode) Class.forName("Batches").getMethod("answer", String.class, JsonNode.class)
                        .invoke(null, ask.get("do").asText(), ask);
                default: return Oracle.answer(ask);
            }
        } catch (InvocationTargetException e) {
            return Oracle.MAPPER.createObjectNode().put("error", Oracle.text(e.getCause()));
        } catch (Throwable e) {
            return Oracle.MAPPER.createObjectNode().put("error", Oracle.text(e));
        }
    }

    /** Every API of the release: its versions, header versions, listeners and flags. */
    static ObjectNode apis() throws Exception {
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        ArrayNode rows = answer.putArray("apis");
        for (ApiKeys api : ApiKeys.values()) {
            ObjectNode o = rows.addObject();
            o.put("name", api.name).put("enum", api.name()).put("apiKey", api.id).put("clusterAction", api.clusterAction);
            short lowest = api.messageType.lowestSupportedVersion(), highest, stable;
            try {
                Method of = api.messageType.getClass().getMethod("highestSupportedVersion", boolean.class);
                highest = (short) of.invoke(api.messageType, true);
                stable = (short) of.invoke(api.messageType, false);
            } catch (NoSuchMethodException e) {                    // before 3.5 no version was unstable
                highest = stable = (short) api.messageType.getClass().getMethod("highestSupportedVersion").invoke(api.messageType);
            }
            o.put("lowest", lowest).put("highest", highest).put("highestStable", stable).put("forwardable", api.forwardable);
            ArrayNode listeners = o.putArray("listeners");
            api.messageType.listeners().forEach(listener -> listeners.add(listener.name()));
            ObjectNode request = o.putObject("requestHeaderVersion"), response = o.putObject("responseHeaderVersion");
            for (short v = lowest; v <= highest; v++) {
                request.put(String.valueOf(v), api.messageType.requestHeaderVersion(v));
                response.put(String.valueOf(v), api.messageType.responseHeaderVersion(v));
            }
        }
        return answer;
    }

    /** JSON -> bytes, checked: they decode whole to an equal object, and both it and its JSON encode to the same bytes. */
    static ObjectNode make(JsonNode ask) throws Exception {
        String hex = encode(ask).get("hex").asText();
        ObjectNode question = Oracle.MAPPER.createObjectNode();
        question.put("message", ask.get("message").asText()).put("version", ask.get("version").asInt()).put("hex", hex);
        ObjectNode read = Messages.decode(question);
        if (read.get("remaining").asInt() != 0 || read.has("reencoded") || read.has("reencodeError"))
            throw new IllegalStateException("its own bytes come back otherwise: " + read);
        question.set("json", read.get("json"));
        if (!encode(question).get("hex").asText().equals(hex))
            throw new IllegalStateException("its own JSON gives other bytes: " + read.get("json"));
        ObjectNode answer = Oracle.MAPPER.createObjectNode().put("hex", hex);
        answer.set("json", read.get("json"));
        return answer;
    }

    static ObjectNode encode(JsonNode ask) throws Exception {
        Class<?> kind = Messages.find(ask.get("message").asText());
        short version = (short) ask.get("version").asInt();
        Messages.supported(kind, version);
        binary((ObjectNode) ask.get("json"), Messages.schema(kind, version));
        return Messages.encode(ask);
    }

    /** Base64 texts of bytes and records become binary nodes, which converters before 3.5 insist on. */
    static void binary(ObjectNode json, Schema schema) throws Exception {
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields)
                for (org.apache.kafka.common.protocol.types.Field tagged : Messages.tagged((TaggedFields) field.def.type).values())
                    binary(json, tagged.name, tagged.type);
            else binary(json, field.def.name, field.def.type);
        }
    }

    static void binary(ObjectNode json, String name, Type type) throws Exception {
        String key = null;
        for (Iterator<String> it = json.fieldNames(); it.hasNext(); ) {
            String one = it.next();
            if (Messages.plain(one).equals(Messages.plain(name))) key = one;
        }
        JsonNode value = key == null ? null : json.get(key);
        if (value == null || value.isNull()) return;
        if (!type.arrayElementType().isPresent()) {
            if (type instanceof Schema) binary((ObjectNode) value, (Schema) type);
            else if (value.isTextual() && type.toString().matches("\\w*(BYTES|RECORDS)")) json.put(key, value.binaryValue());
            return;
        }
        Type element = type.arrayElementType().get();
        ArrayNode all = (ArrayNode) value;
        for (int i = 0; i < all.size(); i++) {
            if (element instanceof Schema) binary((ObjectNode) all.get(i), (Schema) element);
            else if (element.toString().matches("\\w*BYTES")) all.set(i, all.binaryNode(all.get(i).binaryValue()));
        }
    }

    static Message read(JsonNode ask, short version) throws Exception {
        Class<?> kind = Messages.find(ask.get("message").asText());
        binary((ObjectNode) ask.get("json"), Messages.schema(kind, version));
        Class<?> converter = Class.forName(kind.getName() + "JsonConverter");
        return (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, ask.get("json"), version);
    }

    /** JSON of one version ("from") written at another ("version"). */
    static ObjectNode writeAt(JsonNode ask) throws Exception {
        Message m = read(ask, (short) ask.get("from").asInt());
        return Oracle.MAPPER.createObjectNode().put("hex", Oracle.hex(Messages.bytes(m, (short) ask.get("version").asInt())));
    }

    /** The bytes around a stored record: {"serde", "message", "version", "hex"} -> hex, or an error where the release lacks it. */
    static ObjectNode frame(JsonNode ask) throws Exception {
        short version = (short) ask.get("version").asInt();
        Message m = Messages.empty(Messages.find(ask.get("message").asText()));
        m.read(new ByteBufferAccessor(ByteBuffer.wrap(Oracle.unhex(ask.get("hex").asText()))), version);
        String serde = ask.get("serde").asText();
        byte[] bytes;
        switch (serde) {
            case "MetadataRecordSerde":
                bytes = withSerde(Class.forName("org.apache.kafka.metadata.MetadataRecordSerde"), m, version);
                break;
            case "BytesApiMessageSerde": {
                Class<?> outer = Class.forName("org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde");
                bytes = null;
                Object made = outer.getConstructor().newInstance();
                for (Field field : outer.getDeclaredFields()) {
                    if (!field.getType().getSimpleName().equals("BytesApiMessageSerde")) continue;
                    field.setAccessible(true);
                    Object inner = field.get(made);
                    Object pair = pair(m, version);
                    bytes = (byte[]) field.getType().getMethod("serialize", pair.getClass()).invoke(inner, pair);
                }
                if (bytes == null) throw new NoSuchFieldException("BytesApiMessageSerde");
                break;
            }
            case "toVersionPrefixedBytes":
            case "toCoordinatorTypePrefixedBytes":
                bytes = prefixed(serde, m, version);
                break;
            default:
                throw new IllegalArgumentException("no such serde: " + serde);
        }
        return Oracle.MAPPER.createObjectNode().put("hex", Oracle.hex(bytes));
    }

    static byte[] prefixed(String name, Message m, short version) throws Exception {
        for (Method method : Class.forName("org.apache.kafka.common.protocol.MessageUtil").getMethods()) {
            if (!method.getName().equals(name)) continue;
            return (byte[]) (method.getParameterCount() == 2 ? method.invoke(null, version, m) : method.invoke(null, m));
        }
        throw new NoSuchMethodException(name);
    }

    static Object pair(Message m, short version) throws Exception {
        Class<?> pair = Class.forName("org.apache.kafka.server.common.ApiMessageAndVersion");
        return pair.getConstructors()[0].newInstance(m, version);
    }

    static byte[] withSerde(Class<?> type, Message m, short version) throws Exception {
        Object serde = type.getConstructor().newInstance(), pair = pair(m, version);
        Class<?> cacheType = Class.forName("org.apache.kafka.common.protocol.ObjectSerializationCache");
        Object cache = cacheType.getConstructor().newInstance();
        Method size = null, write = null;
        for (Method method : type.getMethods()) {
            if (method.getParameterCount() == 0 || method.getParameterTypes()[0] == Object.class) continue;
            if (method.getName().equals("recordSize")) size = method;
            if (method.getName().equals("write") && method.getParameterCount() == 3) write = method;
        }
        ByteBuffer buffer = ByteBuffer.allocate((int) size.invoke(serde, pair, cache));
        write.invoke(serde, pair, cache, new ByteBufferAccessor(buffer));
        return buffer.array();
    }

    interface Asked {
        Object ask() throws Exception;
    }

    /** The values asked for in each list, with what Kafka's own readers and writers make of them. */
    static ObjectNode primitives(JsonNode ask) throws Exception {
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        ArrayNode rows = answer.putArray("int32");
        for (JsonNode n : ask.path("int32")) {
            ByteBuffer unsigned = ByteBuffer.allocate(16), zigzag = ByteBuffer.allocate(16);
            ByteUtils.writeUnsignedVarint(n.asInt(), unsigned);
            ByteUtils.writeVarint(n.asInt(), zigzag);
            rows.addObject().put("value", n.asInt()).put("unsignedVarint", written(unsigned)).put("varint", written(zigzag));
        }
        rows = answer.putArray("int64");
        for (JsonNode n : ask.path("int64")) {
            ByteBuffer unsigned = ByteBuffer.allocate(16), zigzag = ByteBuffer.allocate(16);
            writeUnsignedVarlong(n.asLong(), unsigned);
            ByteUtils.writeVarlong(n.asLong(), zigzag);
            rows.addObject().put("value", n.asLong()).put("unsignedVarlong", written(unsigned)).put("varlong", written(zigzag));
        }
        rows = answer.putArray("decode");
        for (JsonNode n : ask.path("decode")) {
            byte[] bytes = Oracle.unhex(n.asText());
            ObjectNode o = rows.addObject().put("hex", n.asText());
            ByteBuffer b = ByteBuffer.wrap(bytes);
            outcome(o, "unsignedVarint", () -> ByteUtils.readUnsignedVarint(b.clear()), () -> b.position());
            outcome(o, "varint", () -> ByteUtils.readVarint(b.clear()), () -> b.position());
            outcome(o, "varlong", () -> ByteUtils.readVarlong(b.clear()), () -> b.position());
            DataInputStream[] in = new DataInputStream[1];
            Asked consumed = () -> bytes.length - in[0].available();
            outcome(o, "varintStream", () -> ByteUtils.readVarint(in[0] = stream(bytes)), consumed);
            outcome(o, "varlongStream", () -> ByteUtils.readVarlong(in[0] = stream(bytes)), consumed);
        }
        rows = answer.putArray("crc");
        for (JsonNode n : ask.path("crc")) crc(rows.addObject().put("hex", n.asText()), Oracle.unhex(n.asText()));
        rows = answer.putArray("crcPattern");
        for (JsonNode n : ask.path("crcPattern")) {
            byte[] bytes = new byte[n.asInt()];
            for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) (i * 31 + (i >> 8));
            crc(rows.addObject().put("length", bytes.length), bytes);
        }
        rows = answer.putArray("float64");
        for (JsonNode n : ask.path("float64")) {
            double value = Double.longBitsToDouble(Long.parseUnsignedLong(n.asText(), 16));
            ByteBuffer b = ByteBuffer.allocate(8);
            Type.FLOAT64.write(b, value);
            rows.addObject().put("repr", Double.toString(value)).put("bitsIn", n.asText()).put("hex", written(b));
        }
        rows = answer.putArray("uuid");
        for (JsonNode n : ask.path("uuid")) {
            Uuid uuid = new Uuid(n.get(0).asLong(), n.get(1).asLong());
            ByteBuffer b = ByteBuffer.allocate(16);
            Type.UUID.write(b, uuid);
            rows.addObject().put("base64url", uuid.toString()).put("msb", n.get(0).asLong()).put("lsb", n.get(1).asLong())
                .put("hex", written(b)).put("hashCode", uuid.hashCode());
        }
        rows = answer.putArray("utf8Encode");
        for (JsonNode n : ask.path("utf8Encode")) {
            StringBuilder text = new StringBuilder();
            for (JsonNode unit : n) text.append((char) unit.asInt());
            ObjectNode o = rows.addObject();
            o.set("utf16", n);
            o.put("hex", Oracle.hex(text.toString().getBytes(StandardCharsets.UTF_8)));
        }
        rows = answer.putArray("utf8Decode");
        for (JsonNode n : ask.path("utf8Decode")) {
            String text = new String(Oracle.unhex(n.asText()), StandardCharsets.UTF_8);
            ObjectNode o = rows.addObject().put("hex", n.asText());
            ArrayNode units = o.putArray("utf16");
            text.chars().forEach(units::add);
            o.put("reencoded", Oracle.hex(text.getBytes(StandardCharsets.UTF_8)));
        }
        return answer;
    }

    static void writeUnsignedVarlong(long value, ByteBuffer out) throws Exception {
        for (Method method : ByteUtils.class.getDeclaredMethods()) {
            if (!method.getName().equals("writeUnsignedVarlong") || method.getParameterTypes()[1] != ByteBuffer.class) continue;
            method.setAccessible(true);
            method.invoke(null, value, out);
            return;
        }
        ByteUtils.writeVarlong((value >>> 1) ^ -(value & 1), out);      // zigzag undone, where no writer of its own is there
    }

    static DataInputStream stream(byte[] bytes) {
        return new DataInputStream(new ByteArrayInputStream(bytes));
    }

    static void outcome(ObjectNode o, String name, Asked value, Asked consumed) {
        ObjectNode row = o.putObject(name);
        try {
            row.put("value", ((Number) value.ask()).longValue()).put("consumed", (Integer) consumed.ask());
        } catch (Throwable e) {
            row.put("error", Oracle.text(e));
        }
    }

    static void crc(ObjectNode o, byte[] bytes) {
        CRC32 old = new CRC32();
        old.update(bytes);
        o.put("crc32c", Crc32C.compute(bytes, 0, bytes.length)).put("crc32", old.getValue());
    }

    static String written(ByteBuffer b) {
        return Oracle.hex(b.array(), 0, b.position());
    }
}
