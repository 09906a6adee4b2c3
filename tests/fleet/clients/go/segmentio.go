package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

type segmentio struct {
	brokers []string
	release string
}

func (s segmentio) admin(ctx context.Context, topic string, partitions int) error {
	client := &kafka.Client{Addr: kafka.TCP(s.brokers...)}
	for _, name := range []string{topic, topic + "-gone"} {
		answer := must(client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
			{Topic: name, NumPartitions: partitions, ReplicationFactor: 1}}}))
		check(answer.Errors[name])
	}
	again := must(client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}}))
	if !errors.Is(again.Errors[topic], kafka.TopicAlreadyExists) {
		return fmt.Errorf("made twice: %v", again.Errors[topic])
	}
	gone := must(client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic + "-gone"}}))
	return gone.Errors[topic+"-gone"]
}

func (s segmentio) produce(ctx context.Context, topic, codec string, count int) error {
	codecs := map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	writer := &kafka.Writer{Addr: kafka.TCP(s.brokers...), Topic: topic, Balancer: &kafka.Hash{},
		Compression: codecs[codec], RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond}
	var all []kafka.Message
	for i := range count {
		all = append(all, kafka.Message{Key: []byte(key(i)), Value: []byte(value(codec, i))})
	}
	check(writer.WriteMessages(ctx, all...))
	return writer.Close()
}

func (s segmentio) transactions(context.Context, string, int) error {
	return errors.New("kafka-go has no transactional producer")
}

func (s segmentio) consume(ctx context.Context, topic, group string) error {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: s.brokers, GroupID: group, Topic: topic, MaxWait: 100 * time.Millisecond,
		StartOffset: kafka.FirstOffset, SessionTimeout: 10 * time.Second, HeartbeatInterval: 500 * time.Millisecond,
		IsolationLevel: kafka.ReadCommitted, CommitInterval: 100 * time.Millisecond})
	for {
		message, err := reader.FetchMessage(ctx)
		if errors.Is(err, context.Canceled) {
			break
		}
		check(err)
		say([][]byte{message.Value})
		if err := reader.CommitMessages(context.Background(), message); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return reader.Close()
}
