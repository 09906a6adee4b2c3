import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

/** The workload of Kafka's own clients: java Workload BOOTSTRAP PREFIX. A step that fails goes to stderr and stops nothing. */
public class Workload {
    static String bootstrap, prefix;

    interface Step {
        Object run() throws Exception;
    }

    static void attempt(String name, Step step) {
        try {
            step.run();
        } catch (Throwable e) {
            Throwable why = e instanceof ExecutionException ? e.getCause() : e;
            System.err.println("failed " + name + ": " + why);
        }
    }

    static Map<String, Object> config(Object... more) {
        Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "client.id", prefix + "-java"));
        for (int i = 0; i < more.length; i += 2) all.put((String) more[i], more[i + 1]);
        return all;
    }

    static KafkaProducer<byte[], byte[]> producer(Object... more) {
        return new KafkaProducer<>(config(more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static void send(KafkaProducer<byte[], byte[]> producer, String topic, int count) {
        for (int i = 0; i < count; i++) {
            byte[] key = i % 5 == 4 ? null : ("key-" + i % 7).getBytes();
            byte[] value = i % 11 == 10 ? null : ("value-" + i + " ").repeat(1 + i % 6).getBytes();
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, key, value);
            if (key != null) record.headers().add(new RecordHeader("trace-id", new byte[] {55})).add(new RecordHeader("null", null));
            producer.send(record);
        }
        producer.flush();
    }

    static Object produce(String topic, int count, Object... more) {
        try (KafkaProducer<byte[], byte[]> one = producer(more)) {
            send(one, topic, count);
        }
        return null;
    }

    static Object transaction(String topic, boolean commit) {
        try (KafkaProducer<byte[], byte[]> one = producer("transactional.id", topic + "-tx")) {
            one.initTransactions();
            one.beginTransaction();
            send(one, topic, 8);
            Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(3));
            one.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(topic + "-tx-group"));
            if (commit) one.commitTransaction();
            else one.abortTransaction();
        }
        return null;
    }

    static Object consume(String topic, Object... more) {
        Map<String, Object> config = config(more);
        config.putAll(Map.of("auto.offset.reset", "earliest", "enable.auto.commit", false));
        try (KafkaConsumer<byte[], byte[]> one = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            one.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + 15_000;
            for (int n = 0; n < 100 && System.currentTimeMillis() < end; ) n += one.poll(Duration.ofSeconds(1)).count();
            one.commitSync(Duration.ofSeconds(10));
        }
        return null;
    }

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        prefix = args[1];
        try (Admin admin = Admin.create(config("default.api.timeout.ms", 20_000, "request.timeout.ms", 10_000))) {
            attempt("describe cluster", () -> admin.describeCluster().clusterId().get());
            List<NewTopic> topics = new ArrayList<>();
            for (String name : List.of("none", "gzip", "snappy", "lz4", "zstd", "tx", "hdr")) topics.add(new NewTopic(prefix + "-" + name, 2, (short) 1));
            topics.add(new NewTopic(prefix + "-compact", 1, (short) 1).configs(Map.of("cleanup.policy", "compact", "segment.ms", "1000",
                "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "0")));
            topics.add(new NewTopic(prefix + "-seg", 1, (short) 1).configs(Map.of("segment.bytes", "1048576", "retention.ms", "-1")));
            attempt("create topics", () -> admin.createTopics(topics).all().get());
            attempt("describe topics", () -> admin.describeTopics(List.of(prefix + "-none")).allTopicNames().get());
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd"))
                attempt("produce " + codec, () -> produce(prefix + "-" + codec, 40, "compression.type", codec, "linger.ms", 20));
            attempt("produce headers", () -> produce(prefix + "-hdr", 60, "acks", "1", "enable.idempotence", false));
            for (int i = 0; i < 4; i++) attempt("produce compact", () -> {
                produce(prefix + "-compact", 30);
                Thread.sleep(1200);
                return null;
            });
            attempt("produce segments", () -> {
                byte[] large = new byte[100_000];
                try (KafkaProducer<byte[], byte[]> one = producer("compression.type", "none")) {
                    for (int i = 0; i < 25; i++) one.send(new ProducerRecord<>(prefix + "-seg", large));
                }
                return null;
            });
            for (boolean commit : new boolean[] {true, false, true}) attempt("transaction " + commit, () -> transaction(prefix + "-tx", commit));
            attempt("list transactions", () -> admin.listTransactions().all().get());
            attempt("describe transaction", () -> admin.describeTransactions(List.of(prefix + "-tx-tx")).all().get());
            attempt("describe producers", () -> admin.describeProducers(List.of(new TopicPartition(prefix + "-tx", 0))).all().get());
            attempt("consume", () -> consume(prefix + "-gzip", "group.id", prefix + "-classic"));
            attempt("consume committed", () -> consume(prefix + "-tx", "group.id", prefix + "-committed", "isolation.level", "read_committed"));
            attempt("consume consumer protocol", () -> consume(prefix + "-lz4", "group.id", prefix + "-new", "group.protocol", "consumer"));
            attempt("share group", () -> {
                try (KafkaShareConsumer<byte[], byte[]> one = new KafkaShareConsumer<>(config("group.id", prefix + "-share"), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                    one.subscribe(List.of(prefix + "-none"));
                    for (int i = 0; i < 3; i++) one.poll(Duration.ofSeconds(1));
                }
                return null;
            });
            attempt("list groups", () -> admin.listGroups().all().get());
            attempt("describe groups", () -> admin.describeConsumerGroups(List.of(prefix + "-classic", prefix + "-committed")).all().get());
            attempt("group offsets", () -> admin.listConsumerGroupOffsets(prefix + "-classic").partitionsToOffsetAndMetadata().get());
            attempt("list offsets", () -> admin.listOffsets(Map.of(new TopicPartition(prefix + "-none", 0), OffsetSpec.latest())).all().get());
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, prefix + "-none");
            attempt("describe configs", () -> admin.describeConfigs(List.of(topic, new ConfigResource(ConfigResource.Type.BROKER, "1"))).all().get());
            attempt("alter configs", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", "-1"), AlterConfigOp.OpType.SET)))).all().get());
            AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, prefix, PatternType.PREFIXED),
                new AccessControlEntry("User:kwire", "*", AclOperation.READ, AclPermissionType.ALLOW));
            attempt("create acls", () -> admin.createAcls(List.of(acl)).all().get());
            attempt("describe acls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
            attempt("delete acls", () -> admin.deleteAcls(List.of(AclBindingFilter.ANY)).all().get());
            attempt("alter scram", () -> admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("kwire",
                new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).all().get());
            attempt("describe scram", () -> admin.describeUserScramCredentials().all().get());
            attempt("alter quotas", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
                new ClientQuotaEntity(Map.of("user", "kwire")), List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get());
            attempt("describe quotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
            attempt("create partitions", () -> admin.createPartitions(Map.of(prefix + "-none", NewPartitions.increaseTo(3))).all().get());
            attempt("delete records", () -> admin.deleteRecords(Map.of(new TopicPartition(prefix + "-none", 0), RecordsToDelete.beforeOffset(2))).all().get());
            attempt("log dirs", () -> admin.describeLogDirs(List.of(1)).allDescriptions().get());
            attempt("reassignments", () -> admin.listPartitionReassignments().reassignments().get());
            attempt("elect leaders", () -> admin.electLeaders(org.apache.kafka.common.ElectionType.PREFERRED, Set.of(new TopicPartition(prefix + "-none", 0))).all().get());
            attempt("describe quorum", () -> admin.describeMetadataQuorum().quorumInfo().get());
            attempt("describe features", () -> admin.describeFeatures().featureMetadata().get());
            attempt("delete group", () -> admin.deleteConsumerGroups(List.of(prefix + "-classic")).all().get());
            attempt("delete topic", () -> admin.deleteTopics(List.of(prefix + "-hdr")).all().get());
        }
    }
}
