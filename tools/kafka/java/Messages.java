import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.File;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;

/**
 * Every generated message of the class path, by its schema name. JSON is the generated *JsonConverter's, with the real bytes (base64)
 * where it writes "" for records, and unknown tags under "_unknownTags" of the struct that holds them: {"5": base64}.
 */
public class Messages {
    private static final Map<String, Class<?>> CLASSES = new TreeMap<>();
    private static final Map<String, Map<String, Method>> METHODS = new HashMap<>();

    static {
        try {
            for (String place : System.getProperty("java.class.path").split(File.pathSeparator)) {
                if (!place.endsWith(".jar") || !new File(place).getName().startsWith("kafka-")) continue;
                try (JarFile jar = new JarFile(place)) {
                    jar.stream().map(e -> e.getName()).filter(n -> n.endsWith("JsonConverter.class") && !n.contains("$")).forEach(n -> {
                        String full = n.substring(0, n.length() - "JsonConverter.class".length()).replace('/', '.');
                        String simple = full.substring(full.lastIndexOf('.') + 1);
                        try {
                            CLASSES.putIfAbsent(simple, Class.forName(full));
                        } catch (ClassNotFoundException e) {
                            throw new IllegalStateException(e);
                        }
                    });
                }
            }
        } catch (java.io.IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static Class<?> find(String name) {
        Class<?> found = CLASSES.getOrDefault(name + "Data", CLASSES.get(name));
        if (found == null) throw new IllegalArgumentException("no such message: " + name);
        return found;
    }

    static ObjectNode list() throws Exception {
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        for (Map.Entry<String, Class<?>> e : CLASSES.entrySet()) {
            ObjectNode o = answer.putObject(e.getKey());
            o.put("min", e.getValue().getField("LOWEST_SUPPORTED_VERSION").getShort(null));
            o.put("max", e.getValue().getField("HIGHEST_SUPPORTED_VERSION").getShort(null));
            o.put("package", e.getValue().getPackageName());
        }
        return answer;
    }

    static Message empty(Class<?> kind) throws Exception {
        return (Message) kind.getConstructor().newInstance();
    }

    static byte[] bytes(Message m, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(m.size(cache, version));
        m.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) throw new IllegalStateException("size too large");
        return buffer.array();
    }

    static void supported(Class<?> kind, short version) throws Exception {
        if (version < kind.getField("LOWEST_SUPPORTED_VERSION").getShort(null) || version > kind.getField("HIGHEST_SUPPORTED_VERSION").getShort(null))
            throw new IllegalArgumentException("no such version of " + kind.getSimpleName() + ": " + version);
    }

    static JsonNode json(Message m, short version) throws Exception {
        Class<?> converter = Class.forName(m.getClass().getName() + "JsonConverter");
        JsonNode node = (JsonNode) converter.getMethod("write", m.getClass(), short.class).invoke(null, m, version);
        walk(m, (ObjectNode) node, schema(m.getClass(), version), true);
        return node;
    }

    static Schema schema(Class<?> kind, short version) throws Exception {
        return ((Schema[]) kind.getField("SCHEMAS").get(null))[version];
    }

    static ObjectNode decode(JsonNode ask) throws Exception {
        Class<?> kind = find(ask.get("message").asText());
        short version = (short) ask.get("version").asInt();
        supported(kind, version);
        byte[] data = Oracle.unhex(ask.get("hex").asText());
        ByteBuffer buffer = ByteBuffer.wrap(data);
        Message m = empty(kind);
        m.read(new ByteBufferAccessor(buffer), version);
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        answer.put("remaining", buffer.remaining());
        if (ask.path("json").asBoolean(true)) answer.set("json", json(m, version));
        try {
            String again = Oracle.hex(bytes(m, version));
            if (!again.equals(ask.get("hex").asText())) answer.put("reencoded", again);
        } catch (Exception e) {
            answer.put("reencodeError", Oracle.text(e));
        }
        return answer;
    }

    static ObjectNode encode(JsonNode ask) throws Exception {
        Class<?> kind = find(ask.get("message").asText());
        short version = (short) ask.get("version").asInt();
        supported(kind, version);
        Class<?> converter = Class.forName(kind.getName() + "JsonConverter");
        Message m = (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, ask.get("json"), version);
        walk(m, (ObjectNode) ask.get("json"), schema(kind, version), false);
        return Oracle.MAPPER.createObjectNode().put("hex", Oracle.hex(bytes(m, version)));
    }

    /** {"message", "version", "seed", "nulls": chance of a null where one is allowed, "tags": chance of unknown tags in a struct}. */
    static ObjectNode random(JsonNode ask) throws Exception {
        Class<?> kind = find(ask.get("message").asText());
        short version = (short) ask.get("version").asInt();
        supported(kind, version);
        Message m = random(kind, version, ask, ask.path("nulls").asDouble(0.2));
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        try {
            answer.put("hex", Oracle.hex(bytes(m, version)));
        } catch (NullPointerException e) {                         // 3.9's types call all records nullable
            m = random(kind, version, ask, 0);
            answer.put("hex", Oracle.hex(bytes(m, version)));
        }
        answer.set("json", json(m, version));
        return answer;
    }

    static Message random(Class<?> kind, short version, JsonNode ask, double nulls) throws Exception {
        Message m = empty(kind);
        new Dice(ask.get("seed").asLong(), nulls, ask.path("tags").asDouble(0.1)).fill(m, schema(kind, version), 0);
        return m;
    }

    // ---- one walk over object, JSON and schema: carries records and unknown tags, which the converters leave out

    static void walk(Message m, ObjectNode json, Schema schema, boolean toJson) throws Exception {
        boolean flexible = false;
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields) {
                flexible = true;
                for (Field tagged : tagged((TaggedFields) field.def.type).values()) step(m, json, tagged, toJson);
            } else {
                step(m, json, field.def, toJson);
            }
        }
        if (!flexible) return;
        List<RawTaggedField> unknown = m.unknownTaggedFields();
        if (toJson && unknown != null && !unknown.isEmpty()) {
            ObjectNode tags = json.putObject("_unknownTags");
            for (RawTaggedField t : unknown) tags.put(String.valueOf(t.tag()), Base64.getEncoder().encodeToString(t.data()));
        } else if (!toJson && json.has("_unknownTags")) {
            TreeMap<Integer, byte[]> sorted = new TreeMap<>();
            for (Iterator<Map.Entry<String, JsonNode>> it = json.get("_unknownTags").fields(); it.hasNext(); ) {
                Map.Entry<String, JsonNode> e = it.next();
                sorted.put(Integer.valueOf(e.getKey()), Base64.getDecoder().decode(e.getValue().asText()));
            }
            sorted.forEach((tag, data) -> unknown.add(new RawTaggedField(tag, data)));
        }
    }

    static void step(Message m, ObjectNode json, Field field, boolean toJson) throws Exception {
        String key = null;
        for (Iterator<String> it = json.fieldNames(); it.hasNext(); ) {
            String name = it.next();
            if (plain(name).equals(plain(field.name))) key = name;
        }
        if (key == null) return;                                   // a tagged field at its default
        Method getter = method(m.getClass(), field.name, false);
        Object value = getter.invoke(m);
        if (field.type.toString().endsWith("RECORDS") && !field.type.arrayElementType().isPresent()) {
            if (toJson && value != null) {
                ByteBuffer b = ((ByteBuffer) value.getClass().getMethod("buffer").invoke(value)).duplicate();
                byte[] bytes = new byte[b.remaining()];
                b.get(bytes);
                json.set(key, TextNode.valueOf(Base64.getEncoder().encodeToString(bytes)));
            } else if (!toJson && !json.get(key).isNull()) {
                method(m.getClass(), field.name, true).invoke(m, records(getter.getReturnType(), Base64.getDecoder().decode(json.get(key).asText())));
            }
        } else if (value instanceof Message && !json.get(key).isNull()) {
            walk((Message) value, (ObjectNode) json.get(key), inner(field.type), toJson);
        } else if (value instanceof Collection && field.type.arrayElementType().isPresent() && field.type.arrayElementType().get() instanceof Schema) {
            int i = 0;
            Schema element = inner(field.type.arrayElementType().get());
            for (Object one : (Collection<?>) value) walk((Message) one, (ObjectNode) json.get(key).get(i++), element, toJson);
        }
    }

    @SuppressWarnings("unchecked")
    static Map<Integer, Field> tagged(TaggedFields type) throws Exception {
        java.lang.reflect.Field fields = TaggedFields.class.getDeclaredField("fields");     // fields() is newer than 3.9
        fields.setAccessible(true);
        return new TreeMap<>((Map<Integer, Field>) fields.get(type));
    }

    static Schema inner(org.apache.kafka.common.protocol.types.Type type) {
        return (Schema) type;                                      // a nullable schema is one too
    }

    static Object records(Class<?> base, byte[] bytes) throws Exception {
        for (String where : new String[] {"org.apache.kafka.common.record.internal.MemoryRecords", "org.apache.kafka.common.record.MemoryRecords"}) {
            try {
                return Class.forName(where).getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(bytes));
            } catch (ClassNotFoundException e) {
                // the other release's place
            }
        }
        throw new IllegalStateException("no MemoryRecords");
    }

    static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }

    static Method method(Class<?> kind, String field, boolean setter) {
        Map<String, Method> all = METHODS.computeIfAbsent(kind.getName(), k -> {
            Map<String, Method> found = new HashMap<>();
            for (Method m : kind.getDeclaredMethods()) {
                if (m.isBridge()) continue;
                m.setAccessible(true);
                if (m.getName().startsWith("set") && m.getParameterCount() == 1) found.put("=" + plain(m.getName().substring(3)), m);
                else if (m.getParameterCount() == 0) found.put(plain(m.getName()), m);
            }
            return found;
        });
        Method m = all.get((setter ? "=" : "") + plain(field));
        if (m == null) throw new IllegalStateException(kind.getName() + " has no " + (setter ? "setter of " : "") + field);
        return m;
    }

    // ---- random values by schema

    static class Dice {
        final Random random;
        final double nulls, tags;
        int budget = 400;                                          // structs and leaves in arrays, so that deep messages stay small

        Dice(long seed, double nulls, double tags) {
            this.random = new Random(seed);
            this.nulls = nulls;
            this.tags = tags;
        }

        void fill(Message m, Schema schema, int depth) throws Exception {
            boolean flexible = false;
            for (BoundField field : schema.fields()) {
                if (field.def.type instanceof TaggedFields) {
                    flexible = true;
                    for (Map.Entry<Integer, Field> e : tagged((TaggedFields) field.def.type).entrySet()) {
                        if (random.nextInt(3) > 0) set(m, e.getValue(), depth);
                    }
                } else {
                    set(m, field.def, depth);
                }
            }
            if (flexible && random.nextDouble() < tags) {
                int tag = 20;                                      // above all that any version knows
                for (int i = random.nextInt(3); i >= 0; i--) {
                    tag += 1 + (random.nextBoolean() ? random.nextInt(5) : random.nextInt(20000));
                    m.unknownTaggedFields().add(new RawTaggedField(tag, blob(random.nextInt(4) == 0 ? 200 : 10)));
                }
            }
        }

        void set(Message m, Field field, int depth) throws Exception {
            Method setter = method(m.getClass(), field.name, true);
            Object value = value(field.type, setter.getGenericParameterTypes()[0], depth);
            if (value == null && setter.getParameterTypes()[0].isPrimitive()) return;
            setter.invoke(m, value);
        }

        Object value(org.apache.kafka.common.protocol.types.Type type, Type java, int depth) throws Exception {
            if (type.isNullable() && random.nextDouble() < nulls) return null;
            if (type.arrayElementType().isPresent()) return array(type.arrayElementType().get(), java, depth);
            if (type instanceof Schema) {
                Message m = empty((Class<?>) java);
                fill(m, (Schema) type, depth + 1);
                return m;
            }
            String name = type.toString().replace("COMPACT_", "").replace("NULLABLE_", "");
            switch (name) {
                case "BOOLEAN": return random.nextBoolean();
                case "INT8": return (byte) number(8);
                case "INT16": return (short) number(16);
                case "UINT16": return (int) (number(16) & 0xffff);
                case "INT32": return (int) number(32);
                case "UINT32": return number(32) & 0xffffffffL;
                case "UNSIGNED_INT32": return number(32) & 0xffffffffL;
                case "INT64": return number(64);
                case "FLOAT64": return random.nextInt(4) == 0 ? 0.0 : random.nextGaussian() * Math.pow(10, random.nextInt(30) - 10);
                case "UUID": return random.nextInt(6) == 0 ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
                case "STRING": return text();
                case "BYTES":
                    byte[] b = blob(random.nextInt(8) == 0 ? 300 : 20);
                    return java == ByteBuffer.class ? (Object) ByteBuffer.wrap(b) : b;
                case "RECORDS": return records((Class<?>) java, blob(random.nextInt(4) == 0 ? 400 : 30));
                default: throw new IllegalStateException("no random value for " + type);
            }
        }

        @SuppressWarnings({"unchecked", "rawtypes"})
        Object array(org.apache.kafka.common.protocol.types.Type element, Type java, int depth) throws Exception {
            int n = random.nextInt(Math.max(2, 5 - depth));
            if (depth == 0 && random.nextInt(20) == 0) n = 130;
            n = Math.min(n, Math.max(0, budget));
            budget -= n;
            Class<?> raw = (Class<?>) (java instanceof ParameterizedType ? ((ParameterizedType) java).getRawType() : java);
            Type of = java instanceof ParameterizedType ? ((ParameterizedType) java).getActualTypeArguments()[0]
                    : ((ParameterizedType) raw.getGenericSuperclass()).getActualTypeArguments()[0];
            Collection all = raw == List.class ? new ArrayList<>() : (Collection) raw.getConstructor().newInstance();
            for (int i = 0; i < n; i++) all.add(value(element, of, depth));
            return all;
        }

        long number(int bits) {
            switch (random.nextInt(5)) {
                case 0: return random.nextInt(3) - 1;
                case 1: return (random.nextBoolean() ? -1L << bits - 1 : (1L << bits - 1) - 1);
                case 2: return random.nextInt(100);
                default: return random.nextLong() >> 64 - bits >> random.nextInt(bits);
            }
        }

        byte[] blob(int most) {
            byte[] b = new byte[random.nextInt(most + 1)];
            random.nextBytes(b);
            return b;
        }

        String text() {
            int n = random.nextInt(12) == 0 ? 120 + random.nextInt(40) : random.nextInt(12);
            StringBuilder s = new StringBuilder();
            boolean ascii = random.nextInt(3) > 0;
            for (int i = 0; i < n; i++)
                s.appendCodePoint(ascii ? 32 + random.nextInt(95) : new int[] {'a', 0xe9, 0x43a, 0x4e2d, 0x1f600, 0x7f, 0x10ffff}[random.nextInt(7)]);
            return s.toString();
        }
    }
}
