package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct {
	brokers []string
	release string
}

// config is for the release that the brokers speak as: sarama asks its user which one that is.
func (s saramaClient) config() *sarama.Config {
	config := sarama.NewConfig()
	release, parts := s.release, 3 // 0.10.2.0, 2.8.0
	if strings.HasPrefix(release, "0.") {
		parts = 4
	}
	for strings.Count(release, ".") < parts-1 {
		release += ".0"
	}
	config.Version = must(sarama.ParseKafkaVersion(release))
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	return config
}

func (s saramaClient) admin(ctx context.Context, topic string, partitions int) error {
	admin := must(sarama.NewClusterAdmin(s.brokers, s.config()))
	defer admin.Close()
	detail := &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}
	check(admin.CreateTopic(topic, detail, false))
	check(admin.CreateTopic(topic+"-gone", detail, false))
	if err := admin.CreateTopic(topic, detail, false); !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		return fmt.Errorf("made twice: %v", err)
	}
	if !strings.HasPrefix(s.release, "0.") {
		if len(must(admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic}))) == 0 {
			return errors.New("no configs")
		}
	}
	check(admin.DeleteTopic(topic + "-gone"))
	return nil
}

func (s saramaClient) messages(topic, word string, count int) []*sarama.ProducerMessage {
	var all []*sarama.ProducerMessage
	for i := range count {
		all = append(all, &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(key(i)), Value: sarama.StringEncoder(value(word, i))})
	}
	return all
}

func (s saramaClient) produce(ctx context.Context, topic, codec string, count int) error {
	config := s.config()
	check(config.Producer.Compression.UnmarshalText([]byte(codec)))
	producer := must(sarama.NewSyncProducer(s.brokers, config))
	check(producer.SendMessages(s.messages(topic, codec, count)))
	return producer.Close()
}

func (s saramaClient) transactions(ctx context.Context, topic string, count int) error {
	config := s.config()
	config.Producer.Idempotent, config.Net.MaxOpenRequests, config.Producer.Transaction.ID = true, 1, topic+"-tx"
	producer := must(sarama.NewSyncProducer(s.brokers, config))
	for _, word := range []string{"committed", "aborted"} {
		check(producer.BeginTxn())
		check(producer.SendMessages(s.messages(topic, word, count)))
		if word == "committed" {
			check(producer.CommitTxn())
		} else {
			check(producer.AbortTxn())
		}
	}
	return producer.Close()
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			say([][]byte{message.Value})
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func (s saramaClient) consume(ctx context.Context, topic, group string) error {
	config := s.config()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout, config.Consumer.Group.Heartbeat.Interval = 10*time.Second, 500*time.Millisecond
	if !strings.HasPrefix(s.release, "0.10") {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer := must(sarama.NewConsumerGroup(s.brokers, group, config))
	for ctx.Err() == nil {
		check(consumer.Consume(ctx, []string{topic}, handler{}))
	}
	return consumer.Close()
}
