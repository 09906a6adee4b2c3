package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type franz struct {
	brokers []string
	release string
}

func (f franz) open(more ...kgo.Opt) *kgo.Client {
	return must(kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(f.brokers...)}, more...)...))
}

func (f franz) create(ctx context.Context, client *kgo.Client, topic string, partitions int) error {
	request, one := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, int32(partitions), 1
	request.Topics, request.TimeoutMillis = append(request.Topics, one), 10000
	return kerr.ErrorForCode(must(request.RequestWith(ctx, client)).Topics[0].ErrorCode)
}

func (f franz) admin(ctx context.Context, topic string, partitions int) error {
	client := f.open()
	defer client.Close()
	check(f.create(ctx, client, topic, partitions))
	check(f.create(ctx, client, topic+"-gone", 1))
	if err := f.create(ctx, client, topic, 1); !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("made twice: %v", err)
	}
	request, gone := kmsg.NewPtrDeleteTopicsRequest(), topic+"-gone"
	one := kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = &gone
	request.Topics, request.TopicNames, request.TimeoutMillis = append(request.Topics, one), []string{gone}, 10000
	check(kerr.ErrorForCode(must(request.RequestWith(ctx, client)).Topics[0].ErrorCode))
	metadata := kmsg.NewPtrMetadataRequest()
	for _, topic := range must(metadata.RequestWith(ctx, client)).Topics {
		if *topic.Topic == gone {
			return errors.New("a topic is left")
		}
	}
	return nil
}

func (f franz) send(ctx context.Context, client *kgo.Client, topic, word string, count int) error {
	var all []*kgo.Record
	for i := range count {
		all = append(all, &kgo.Record{Topic: topic, Key: []byte(key(i)), Value: []byte(value(word, i))})
	}
	return client.ProduceSync(ctx, all...).FirstErr()
}

func (f franz) produce(ctx context.Context, topic, codec string, count int) error {
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	client := f.open(kgo.ProducerBatchCompression(codecs[codec]))
	defer client.Close()
	return f.send(ctx, client, topic, codec, count)
}

func (f franz) transactions(ctx context.Context, topic string, count int) error {
	client := f.open(kgo.TransactionalID(topic + "-tx"))
	defer client.Close()
	for _, word := range []string{"committed", "aborted"} {
		check(client.BeginTransaction())
		check(f.send(ctx, client, topic, word, count))
		check(client.EndTransaction(ctx, kgo.TransactionEndTry(word == "committed")))
	}
	return nil
}

func (f franz) consume(ctx context.Context, topic, group string) error {
	client := f.open(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(500*time.Millisecond), kgo.BlockRebalanceOnPoll())
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 200)
		if err := fetches.Err(); err != nil && !slices.Contains([]error{context.Canceled}, err) {
			return err
		}
		var values [][]byte
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, record.Value) })
		say(values)
		if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
	return nil
}
