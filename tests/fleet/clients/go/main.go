// Clients in Go: client CLIENT BOOTSTRAP RELEASE COMMAND ...; CLIENT is franz-go, sarama or kafka-go.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// What each client can do: the commands of tests/fleet/clients/__init__.py.
type client interface {
	admin(ctx context.Context, topic string, partitions int) error
	produce(ctx context.Context, topic, codec string, count int) error
	transactions(ctx context.Context, topic string, count int) error
	consume(ctx context.Context, topic, group string) error
}

func key(i int) string { return fmt.Sprintf("key-%d", i) }

func value(word string, i int) string {
	return fmt.Sprintf("%s-%d some text that is long enough", word, i)
}

// say prints the names of records that were read, one a line, before their offsets are committed.
func say(values [][]byte) {
	out := bufio.NewWriter(os.Stdout)
	for _, one := range values {
		fmt.Fprintln(out, strings.SplitN(string(one), " ", 2)[0])
	}
	out.Flush()
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	brokers, release, args := strings.Split(os.Args[2], ","), os.Args[3], os.Args[4:]
	var one client
	switch os.Args[1] {
	case "franz-go":
		one = franz{brokers, release}
	case "sarama":
		one = saramaClient{brokers, release}
	default:
		one = segmentio{brokers, release}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	number := func(at int) int { return must(strconv.Atoi(args[at])) }
	switch args[0] {
	case "admin":
		check(one.admin(ctx, args[1], number(2)))
	case "produce":
		check(one.produce(ctx, args[1], args[2], number(3)))
	case "transactions":
		check(one.transactions(ctx, args[1], number(2)))
	case "consume":
		go func() { // until standard input ends
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
		check(one.consume(ctx, args[1], args[2]))
	}
}
