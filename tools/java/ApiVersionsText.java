import java.lang.reflect.Constructor;
import java.util.*;

/**
 * What a release's clients say of the APIs of a broker (java ApiVersionsText HOST:PORT), as kafka-broker-api-versions prints it, or
 * of a broker that offers none (no argument). By reflection: NodeApiVersions' constructor has other arguments in each release.
 */
public class ApiVersionsText {
    public static void main(String[] args) throws Exception {
        Class<?> versions = Class.forName("org.apache.kafka.clients.NodeApiVersions");
        if (args.length == 0) {
            Constructor<?> constructor = versions.getConstructors()[0];
            Object[] arguments = new Object[constructor.getParameterCount()];
            for (int i = 0; i < arguments.length; i++) {
                Class<?> type = constructor.getParameterTypes()[i];
                arguments[i] = type == boolean.class ? (Object) false : type == long.class ? (Object) (-1L)
                        : type == Map.class ? Map.of() : new ArrayList<>();
            }
            System.out.println(versions.getMethod("toString", boolean.class).invoke(constructor.newInstance(arguments), true));
            return;
        }
        String[] place = args[0].split(":");
        try (java.net.Socket socket = new java.net.Socket(place[0], Integer.parseInt(place[1]))) {
            Object answer = ask(socket);
            Object made = null;
            for (Constructor<?> constructor : versions.getConstructors()) {
                Object[] arguments = new Object[constructor.getParameterCount()];
                for (int i = 0; i < arguments.length; i++) {
                    Class<?> type = constructor.getParameterTypes()[i];
                    String generic = constructor.getGenericParameterTypes()[i].toString();
                    String getter = generic.contains("SupportedFeatureKey") ? "supportedFeatures"
                            : generic.contains("FinalizedFeatureKey") ? "finalizedFeatures"
                            : type == long.class ? "finalizedFeaturesEpoch" : type == boolean.class ? "zkMigrationReady" : "apiKeys";
                    arguments[i] = answer.getClass().getMethod(getter).invoke(answer);
                }
                made = constructor.newInstance(arguments);
            }
            System.out.println(args[0] + " (id: 1 rack: null isFenced: false) -> "
                + versions.getMethod("toString", boolean.class).invoke(made, true));
        }
    }

    /** ApiVersions v3 over the socket, read by the release's own class. */
    static Object ask(java.net.Socket socket) throws Exception {
        byte[] request = {0, 18, 0, 3, 0, 0, 0, 1, 0, 1, 'k', 0, 2, 'k', 2, '1', 0};
        java.io.DataOutputStream out = new java.io.DataOutputStream(socket.getOutputStream());
        out.writeInt(request.length);
        out.write(request);
        java.io.DataInputStream in = new java.io.DataInputStream(socket.getInputStream());
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        java.nio.ByteBuffer body = java.nio.ByteBuffer.wrap(bytes, 4, bytes.length - 4).slice();   // header v0: the correlation id
        Object answer = Class.forName("org.apache.kafka.common.message.ApiVersionsResponseData").getConstructor().newInstance();
        Class<?> readable = Class.forName("org.apache.kafka.common.protocol.Readable");
        Object accessor = Class.forName("org.apache.kafka.common.protocol.ByteBufferAccessor").getConstructor(java.nio.ByteBuffer.class).newInstance(body);
        answer.getClass().getMethod("read", readable, short.class).invoke(answer, accessor, (short) 3);
        return answer;
    }
}
