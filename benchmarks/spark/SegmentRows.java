// The peer in the JVM: Kafka's own classes read the same segments in a Spark job, to rows as of Spark's Kafka source.
import java.io.File;
import java.sql.Timestamp;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

public final class SegmentRows {
    private static final StructType SCHEMA = new StructType()
        .add("key", DataTypes.BinaryType).add("value", DataTypes.BinaryType).add("topic", DataTypes.StringType)
        .add("partition", DataTypes.IntegerType).add("offset", DataTypes.LongType)
        .add("timestamp", DataTypes.TimestampType).add("timestampType", DataTypes.IntegerType);

    private SegmentRows() { }

    public static Dataset<Row> read(SparkSession spark, String[] paths) {
        List<String> list = Arrays.asList(paths);
        JavaRDD<Row> rows = new JavaSparkContext(spark.sparkContext()).parallelize(list, list.size())
            .flatMap(SegmentRows::rows);
        return spark.createDataFrame(rows, SCHEMA);
    }

    private static Iterator<Row> rows(String path) throws Exception {
        File file = new File(path);
        String folder = file.getParentFile().getName();
        int dash = folder.lastIndexOf('-');
        String topic = folder.substring(0, dash);
        int partition = Integer.parseInt(folder.substring(dash + 1));
        Iterator<? extends RecordBatch> batches = FileRecords.open(file, false).batches().iterator();
        return new Iterator<Row>() {
            private RecordBatch batch;
            private Iterator<Record> records;

            @Override public boolean hasNext() {
                while (records == null || !records.hasNext()) {
                    if (!batches.hasNext()) return false;
                    batch = batches.next();
                    batch.ensureValid();
                    records = batch.iterator();
                }
                return true;
            }

            @Override public Row next() {
                hasNext();
                Record record = records.next();
                return RowFactory.create(
                    record.hasKey() ? Utils.toArray(record.key()) : null,
                    record.hasValue() ? Utils.toArray(record.value()) : null,
                    topic, partition, record.offset(), new Timestamp(record.timestamp()), batch.timestampType().id);
            }
        };
    }
}
