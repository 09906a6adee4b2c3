import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** Kafka's own clients, 2.2 to 4.x: java Client BOOTSTRAP RELEASE COMMAND ...; tests/fleet/clients/__init__.py has the commands. */
public class Client {
    static final Duration SOON = Duration.ofMillis(100);
    static String bootstrap;

    static Properties config(String... more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < more.length; i += 2) all.put(more[i], more[i + 1]);
        return all;
    }

    static KafkaProducer<String, String> producer(String... more) {
        return new KafkaProducer<>(config(more), new StringSerializer(), new StringSerializer());
    }

    static void send(KafkaProducer<String, String> producer, String topic, String word, int count) throws Exception {
        List<java.util.concurrent.Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++)
            sent.add(producer.send(new ProducerRecord<>(topic, "key-" + i, word + "-" + i + " some text that is long enough")));
        producer.flush();
        for (java.util.concurrent.Future<RecordMetadata> one : sent) one.get();
    }

    static void admin(String release, String topic, int partitions) throws Exception {
        boolean describes = !release.startsWith("0.");
        try (AdminClient admin = AdminClient.create(config())) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1), new NewTopic(topic + "-gone", 1, (short) 1))).all().get();
            if (!admin.listTopics().names().get().containsAll(List.of(topic, topic + "-gone"))) throw new Exception("a topic is missing");
            if (admin.describeCluster().nodes().get().isEmpty()) throw new Exception("no nodes");
            if (describes) {
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
                Config configs = admin.describeConfigs(List.of(resource)).all().get().get(resource);
                if (!configs.get("cleanup.policy").value().equals("delete")) throw new Exception(configs.toString());
                admin.createPartitions(Map.of(topic + "-gone", NewPartitions.increaseTo(3))).all().get();
            }
            admin.deleteTopics(List.of(topic + "-gone")).all().get();
            if (admin.listTopics().names().get().contains(topic + "-gone")) throw new Exception("a topic is left");
            try {
                admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
                throw new Exception("made twice");
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof org.apache.kafka.common.errors.TopicExistsException)) throw e;
            }
        }
    }

    static void transactions(String topic, int count) throws Exception {
        try (KafkaProducer<String, String> producer = producer("transactional.id", topic + "-tx")) {
            producer.initTransactions();
            for (String word : List.of("committed", "aborted")) {
                producer.beginTransaction();
                send(producer, topic, word, count);
                if (word.equals("committed")) producer.commitTransaction(); else producer.abortTransaction();
            }
        }
    }

    /** For each line of standard input one record without a retry: "ok", or the class of what the producer was told. */
    static void attempts(String topic) {
        for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); lines.nextLine()) {
            String said = "ok";
            try (KafkaProducer<String, String> producer = producer("retries", "0", "enable.idempotence", "false", "acks", "all",
                    "request.timeout.ms", "2000", "delivery.timeout.ms", "2500", "linger.ms", "0")) {
                producer.send(new ProducerRecord<>(topic, "key", "value")).get();
            } catch (ExecutionException e) {
                said = e.getCause().getClass().getSimpleName();
            } catch (Exception e) {
                said = e.toString();
            }
            System.out.println(said);
        }
    }

    static void consume(String release, String topic, String group) throws Exception {
        boolean[] over = {false};
        Thread input = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {}
            } catch (java.io.IOException e) {
            }
            over[0] = true;
        });
        input.setDaemon(true);
        input.start();
        Properties config = config("group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "isolation.level", release.startsWith("0.10") ? "read_uncommitted" : "read_committed", "session.timeout.ms", "10000", "heartbeat.interval.ms", "500", "max.poll.records", "200");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!over[0]) {
                StringBuilder lines = new StringBuilder();
                for (ConsumerRecord<String, String> record : consumer.poll(SOON)) lines.append(record.value().split(" ")[0]).append('\n');
                System.out.print(lines);
                System.out.flush();
                try {
                    consumer.commitSync();
                } catch (CommitFailedException | org.apache.kafka.common.errors.RebalanceInProgressException e) {
                    System.err.println(e);
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        switch (args[2]) {
            case "admin": admin(args[1], args[3], Integer.parseInt(args[4])); break;
            case "produce":
                try (KafkaProducer<String, String> producer = producer("compression.type", args[4], "linger.ms", "5")) {
                    send(producer, args[3], args[4], Integer.parseInt(args[5]));
                }
                break;
            case "transactions": transactions(args[3], Integer.parseInt(args[4])); break;
            case "attempts": attempts(args[3]); break;
            case "consume": consume(args[1], args[3], args[4]); break;
            default: throw new IllegalArgumentException(args[2]);
        }
    }
}
