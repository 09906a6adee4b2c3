// Prints, as one JSON value, what a Kafka release's classes say of APIs, errors, metadata versions and features.
// Everything goes by reflection, so that the same program runs against every release since 0.9.

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

public class Probe {
    static final String COMMON = "org.apache.kafka.server.common.";

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("apis", apis());
        all.put("errors", errors());
        all.put("control", control());
        Class<?> metadata = find(COMMON + "MetadataVersion");
        if (metadata != null) {
            all.put("metadata_versions", metadataVersions(metadata));
            all.put("bounds", bounds(metadata));
        }
        Class<?> features = find(COMMON + "Feature");
        if (features == null) features = find(COMMON + "Features");
        if (features != null && features.isEnum()) all.put("features", features(features));
        System.out.println(json(all));
    }

    static Object apis() throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        Map<String, Object> rows = new LinkedHashMap<>();
        for (Object key : type.getEnumConstants()) {
            Map<String, Object> row = new LinkedHashMap<>();
            int id = ((Number) field(key, "id")).intValue();
            row.put("name", field(key, "name"));
            row.put("enum", ((Enum<?>) key).name());
            if (has(type, "hasValidVersion") && !(Boolean) call(key, "hasValidVersion")) {
                row.put("removed", true);
            } else if (has(type, "oldestVersion")) {
                row.put("min", call(key, "oldestVersion"));
                boolean both = has(type, "latestVersion", boolean.class);
                Object highest = both ? type.getMethod("latestVersion", boolean.class).invoke(key, true) : call(key, "latestVersion");
                row.put("max", highest);
                if (both) {
                    Object stable = type.getMethod("latestVersion", boolean.class).invoke(key, false);
                    if (!stable.equals(highest)) {
                        row.put("unstable", true);
                        row.put("maxStable", stable);
                    }
                }
            } else {  // before 0.11: tables beside the keys, null where a version cannot be spoken
                Class<?> protocol = Class.forName("org.apache.kafka.common.protocol.Protocol");
                Object schemas = Array.get(protocol.getField("REQUESTS").get(null), id);
                int low = 0;
                while (low < Array.getLength(schemas) && Array.get(schemas, low) == null) low++;
                row.put("min", low);
                row.put("max", Array.getLength(schemas) - 1);
            }
            for (String flag : new String[] {"clusterAction", "forwardable"}) {
                Object value = field(key, flag);
                if (Boolean.TRUE.equals(value)) row.put(flag, true);
            }
            rows.put(String.valueOf(id), row);
        }
        return rows;
    }

    static Object errors() throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.common.protocol.Errors");
        Class<?> retriable = Class.forName("org.apache.kafka.common.errors.RetriableException");
        Class<?> stale = Class.forName("org.apache.kafka.common.errors.InvalidMetadataException");
        Map<String, Object> rows = new LinkedHashMap<>();
        for (Object error : type.getEnumConstants()) {
            Object exception = call(error, "exception");
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("name", ((Enum<?>) error).name());
            row.put("message", exception == null ? "" : ((Throwable) exception).getMessage());
            row.put("retriable", retriable.isInstance(exception));
            row.put("invalidMetadata", stale.isInstance(exception));
            rows.put(String.valueOf(call(error, "code")), row);
        }
        return rows;
    }

    static Object control() throws Exception {
        Class<?> type = find("org.apache.kafka.common.record.internal.ControlRecordType");
        if (type == null) type = find("org.apache.kafka.common.record.ControlRecordType");
        Map<String, Object> rows = new LinkedHashMap<>();
        if (type == null) return rows;
        for (Object kind : type.getEnumConstants()) {
            Object number = has(type, "type") ? call(kind, "type") : field(kind, "type");
            if (number != null) rows.put(String.valueOf(number), ((Enum<?>) kind).name());
        }
        return rows;
    }

    static Object metadataVersions(Class<?> type) throws Exception {
        Map<String, Object> rows = new LinkedHashMap<>();
        for (Object version : type.getEnumConstants()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("level", call(version, "featureLevel"));
            row.put("changed", field(version, "didMetadataChange"));
            row.put("release", has(type, "shortVersion") ? call(version, "shortVersion") : field(version, "release"));
            Map<String, Object> can = new TreeMap<>();
            for (Method method : type.getMethods()) {
                String name = method.getName();
                if (method.getParameterCount() > 0 || Modifier.isStatic(method.getModifiers())) continue;
                if (!name.matches("is\\w+Supported|\\w+[a-z]Version") || name.matches("shortVersion|ibpVersion|version")) continue;
                Object value;
                try {
                    value = method.invoke(version);
                } catch (java.lang.reflect.InvocationTargetException refused) {
                    value = null;
                }
                can.put(name, value instanceof Enum ? ((Enum<?>) value).name() : value);
            }
            row.put("can", can);
            rows.put(String.valueOf(call(version, "version")), row);
        }
        return rows;
    }

    static Object bounds(Class<?> type) throws Exception {
        Map<String, Object> row = new LinkedHashMap<>();
        for (String name : new String[] {"MINIMUM_VERSION", "MINIMUM_KRAFT_VERSION", "MINIMUM_BOOTSTRAP_VERSION"}) {
            try {
                row.put(name, String.valueOf(call(type.getField(name).get(null), "version")));
            } catch (NoSuchFieldException absent) {
                continue;
            }
        }
        for (String name : new String[] {"latest", "latestProduction", "latestTesting"})
            if (has(type, name)) row.put(name, String.valueOf(call(type.getMethod(name).invoke(null), "version")));
        return row;
    }

    static Object features(Class<?> type) throws Exception {
        Map<String, Object> rows = new LinkedHashMap<>();
        for (Object feature : type.getEnumConstants()) {
            String name = String.valueOf(call(feature, "featureName"));
            if (name.contains("test")) continue;
            Object[] levels = (Object[]) call(feature, "featureVersions");
            Map<String, Object> row = new LinkedHashMap<>();
            Object[] written = new Object[levels.length];
            for (int at = 0; at < levels.length; at++) {
                Map<String, Object> level = new LinkedHashMap<>();
                level.put("name", ((Enum<?>) levels[at]).name());
                level.put("level", call(levels[at], "featureLevel"));
                level.put("bootstrapMetadataVersion", String.valueOf(call(call(levels[at], "bootstrapMetadataVersion"), "version")));
                level.put("dependencies", new TreeMap<>((Map<?, ?>) call(levels[at], "dependencies")));
                written[at] = level;
            }
            row.put("levels", written);
            for (String bound : new String[] {"latestProduction", "latestTesting", "minimumProduction"})
                row.put(bound, has(type, bound) ? call(feature, bound) : null);
            rows.put(name, row);
        }
        return rows;
    }

    static Class<?> find(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException absent) {
            return null;
        }
    }

    static boolean has(Class<?> type, String name, Class<?>... parameters) {
        return Arrays.stream(type.getMethods()).anyMatch(method -> method.getName().equals(name) && Arrays.equals(method.getParameterTypes(), parameters));
    }

    static Object call(Object target, String name) throws Exception {
        Class<?> type = target instanceof Enum ? ((Enum<?>) target).getDeclaringClass() : target.getClass();
        Method method;
        try {
            method = type.getMethod(name);
        } catch (NoSuchMethodException absent) {
            method = target.getClass().getMethod(name);
        }
        method.setAccessible(true);
        return method.invoke(target);
    }

    static Object field(Object target, String name) throws Exception {
        Class<?> type = target instanceof Enum ? ((Enum<?>) target).getDeclaringClass() : target.getClass();
        try {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(target);
        } catch (NoSuchFieldException absent) {
            return null;
        }
    }

    static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Number) return String.valueOf(value);
        StringBuilder text = new StringBuilder();
        if (value instanceof Map) {
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet())
                text.append(text.length() == 0 ? "" : ", ").append(json(String.valueOf(entry.getKey()))).append(": ").append(json(entry.getValue()));
            return "{" + text + "}";
        }
        if (value instanceof Object[]) {
            for (Object item : (Object[]) value) text.append(text.length() == 0 ? "" : ", ").append(json(item));
            return "[" + text + "]";
        }
        for (char letter : String.valueOf(value).toCharArray()) {
            if (letter == '"' || letter == '\\') text.append('\\').append(letter);
            else if (letter < 32 || letter > 126) text.append(String.format("\\u%04x", (int) letter));
            else text.append(letter);
        }
        return "\"" + text + "\"";
    }
}
