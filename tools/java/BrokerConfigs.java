import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/** The configurations of a release's broker, in their order: a line for each, its name, type, default ("?" where there is none) and validator, as JSON. */
public class BrokerConfigs {
    public static void main(String[] args) throws Exception {
        for (ConfigDef.ConfigKey key : definition().configKeys().values()) {
            List<String> row = new ArrayList<>();
            row.add(text(key.name));
            row.add(text(key.type.name()));
            row.add(key.hasDefault() ? value(key.defaultValue) : text("?"));
            row.add(key.validator == null ? "null" : validator(key.validator));
            System.out.println("[" + String.join(", ", row) + "]");
        }
    }

    static ConfigDef definition() throws Exception {
        try {
            return (ConfigDef) Class.forName("org.apache.kafka.server.config.AbstractKafkaConfig").getField("CONFIG_DEF").get(null);
        } catch (ClassNotFoundException older) {
            Class<?> companion = Class.forName("kafka.server.KafkaConfig$");
            return (ConfigDef) companion.getMethod("configDef").invoke(companion.getField("MODULE$").get(null));
        }
    }

    static String validator(Object validator) throws Exception {
        Map<String, String> facts = new TreeMap<>();
        facts.put("kind", text(validator.getClass().getSimpleName()));
        Object strings = field(validator, "validString");
        for (String name : List.of("min", "max", "isEmptyAllowed", "isNullAllowed")) {
            Object fact = field(validator, name);
            if (fact != null) facts.put(name, fact.toString());
        }
        Object valid = field(strings == null ? validator : strings, "validStrings");
        if (valid != null) {
            List<String> quoted = new ArrayList<>();
            for (Object one : (Iterable<?>) valid) quoted.add(text(one.toString()));
            facts.put("strings", "[" + String.join(", ", quoted) + "]");
        }
        List<String> pairs = new ArrayList<>();
        facts.forEach((name, fact) -> pairs.add(text(name) + ": " + fact));
        return "{" + String.join(", ", pairs) + "}";
    }

    static Object field(Object of, String name) throws Exception {
        try {
            Field field = of.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.get(of);
        } catch (NoSuchFieldException lacking) {
            return null;
        }
    }

    static String value(Object value) {
        if (value == null) return "null";
        if (value instanceof Class) return text(((Class<?>) value).getName());
        if (value instanceof List) {
            List<String> parts = new ArrayList<>();
            for (Object part : (List<?>) value) parts.add(part.toString());
            return text(String.join(",", parts));
        }
        return text(value.toString());
    }

    static String text(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
    }
}
