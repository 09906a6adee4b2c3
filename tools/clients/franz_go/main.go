// The workload of franz-go: workload BOOTSTRAP PREFIX.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func attempt(name string, step func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := step(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "failed %s: %v\n", name, err)
	}
}

func records(topic string, count int) []*kgo.Record {
	var all []*kgo.Record
	for i := 0; i < count; i++ {
		record := &kgo.Record{Topic: topic, Value: []byte(strings.Repeat(fmt.Sprintf("value-%d ", i), 1+i%6))}
		if i%5 != 4 {
			record.Key = []byte(fmt.Sprintf("key-%d", i%7))
			record.Headers = []kgo.RecordHeader{{Key: "trace-id", Value: []byte("7")}}
		}
		all = append(all, record)
	}
	return all
}

func main() {
	seeds, topic := kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), os.Args[2]+"-kgo"
	id := kgo.ClientID(os.Args[2] + "-kgo")
	open := func(more ...kgo.Opt) *kgo.Client {
		client, err := kgo.NewClient(append([]kgo.Opt{seeds, id}, more...)...)
		if err != nil {
			panic(err)
		}
		return client
	}
	admin := open()
	attempt("create topic", func(ctx context.Context) error {
		request := kmsg.NewPtrCreateTopicsRequest()
		one := kmsg.NewCreateTopicsRequestTopic()
		one.Topic, one.NumPartitions, one.ReplicationFactor = topic, 2, 1
		request.Topics, request.TimeoutMillis = append(request.Topics, one), 10000
		response, err := request.RequestWith(ctx, admin)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(response.Topics[0].ErrorCode)
	})
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		attempt("produce "+name, func(ctx context.Context) error {
			client := open(kgo.ProducerBatchCompression(codecs[name]))
			defer client.Close()
			return client.ProduceSync(ctx, records(topic, 20)...).FirstErr()
		})
	}
	for _, commit := range []bool{true, false} {
		attempt(fmt.Sprintf("transaction %v", commit), func(ctx context.Context) error {
			client := open(kgo.TransactionalID(topic + "-tx"))
			defer client.Close()
			if err := client.BeginTransaction(); err != nil {
				return err
			}
			if err := client.ProduceSync(ctx, records(topic, 8)...).FirstErr(); err != nil {
				return err
			}
			return client.EndTransaction(ctx, kgo.TransactionEndTry(commit))
		})
	}
	attempt("consume", func(ctx context.Context) error {
		client := open(kgo.ConsumerGroup(topic+"-group"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		defer client.Close()
		for n := 0; n < 100; {
			fetches := client.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				return err
			}
			n += fetches.NumRecords()
		}
		return client.CommitUncommittedOffsets(ctx)
	})
	attempt("describe group", func(ctx context.Context) error {
		request := kmsg.NewPtrDescribeGroupsRequest()
		request.Groups = []string{topic + "-group"}
		_, err := request.RequestWith(ctx, admin)
		return err
	})
	admin.Close()
}
