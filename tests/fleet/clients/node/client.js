// kafkajs: node client.js BOOTSTRAP RELEASE COMMAND ...
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require("kafkajs");

const [bootstrap, release, command, topic, ...args] = process.argv.slice(2);
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.ERROR });

CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
CompressionCodecs[CompressionTypes.LZ4] = () => {
  const lz4 = require("lz4-napi");
  return {
    compress: async (encoder) => lz4.compressFrame(encoder.buffer),
    decompress: async (data) => lz4.decompressFrame(data),
  };
};
CompressionCodecs[CompressionTypes.ZSTD] = () => {
  const ready = new Promise((resolve) => require("zstd-codec").ZstdCodec.run((zstd) => resolve(new zstd.Streaming())));
  return {
    compress: async (encoder) => Buffer.from((await ready).compress(encoder.buffer)),
    decompress: async (data) => Buffer.from((await ready).decompress(data)),
  };
};
const codecs = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 };

async function send(to, word, count, compression) {
  for (let first = 0; first < count; first += 1000) {
    const messages = [];
    for (let i = first; i < Math.min(first + 1000, count); i++)
      messages.push({ key: `key-${i}`, value: `${word}-${i} some text that is long enough` });
    await to.send({ topic, messages, compression });
  }
}

async function admin(partitions) {
  const client = kafka.admin();
  await client.connect();
  const topics = [{ topic, numPartitions: partitions }, { topic: `${topic}-gone`, numPartitions: 1 }];
  if (Number(release.split(".")[0]) < 3) for (const one of topics) one.replicationFactor = 1; // KIP-464 came with 2.4
  if (!(await client.createTopics({ topics, waitForLeaders: true }))) throw new Error("not made");
  if (!release.startsWith("0.")) {
    const { resources } = await client.describeConfigs({ resources: [{ type: 2, name: topic }] });
    const policy = resources[0].configEntries.find((entry) => entry.configName === "cleanup.policy").configValue;
    if (policy !== "delete") throw new Error(policy);
    await client.createPartitions({ topicPartitions: [{ topic: `${topic}-gone`, count: 3 }] });
  }
  await client.deleteTopics({ topics: [`${topic}-gone`] });
  const left = await client.listTopics();
  if (!left.includes(topic) || left.includes(`${topic}-gone`)) throw new Error(left);
  if (await client.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }] })) throw new Error("made twice");
  await client.disconnect();
}

async function transactions(count) {
  const producer = kafka.producer({ transactionalId: `${topic}-tx`, maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  for (const word of ["committed", "aborted"]) {
    const transaction = await producer.transaction();
    await send(transaction, word, count, 0);
    await (word === "committed" ? transaction.commit() : transaction.abort());
  }
  await producer.disconnect();
}

async function consume(groupId) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 10000, heartbeatInterval: 500 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, heartbeat, isRunning, isStale }) => {
      if (!isRunning() || isStale()) return;
      const lines = batch.messages.map((message) => message.value.toString().split(" ")[0] + "\n");
      await new Promise((resolve) => process.stdout.write(lines.join(""), resolve));
      const offset = (BigInt(batch.lastOffset()) + 1n).toString();
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset }]);
      await heartbeat();
    },
  });
  process.stdin.resume();
  await new Promise((resolve) => process.stdin.on("end", resolve));
  await consumer.disconnect();
}

async function main() {
  if (command === "admin") return admin(Number(args[0]));
  if (command === "transactions") return transactions(Number(args[0]));
  if (command === "consume") return consume(args[0]);
  const producer = kafka.producer();
  await producer.connect();
  await send(producer, args[0], Number(args[1]), codecs[args[0]]);
  await producer.disconnect();
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  }
);
