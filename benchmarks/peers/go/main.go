// franz-go as a peer: "load PATH", then "run WORK PASSES" -> "wall_ns cpu_ns records check".
// It has no public encoder of record batches (kgo builds them inside its producer), so it only decodes.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func cpu() int64 {
	const processTime = 2 // CLOCK_PROCESS_CPUTIME_ID: in nanoseconds; getrusage may count in ticks
	var t syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, processTime, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		panic(err)
	}
	return t.Nano()
}

// The consumer's path: ProcessFetchPartition checks the CRC, decompresses and makes the records.
func decode(data []byte, decompressor kgo.Decompressor) (count, check int64) {
	rp := kmsg.NewFetchResponseTopicPartition()
	rp.RecordBatches = data
	fp, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: "t"}, &rp, decompressor, nil)
	if fp.Err != nil {
		panic(fp.Err)
	}
	for _, r := range fp.Records {
		count++
		check += r.Offset + r.Timestamp.UnixMilli() + int64(len(r.Key)) + int64(len(r.Value))
	}
	return count, check
}

func split(data []byte) (chunks [][]byte) {
	for from, at := 0, 0; at < len(data); {
		at += 12 + int(binary.BigEndian.Uint32(data[at+8:]))
		if at-from >= 1<<20 || at >= len(data) {
			chunks = append(chunks, data[from:at])
			from = at
		}
	}
	return chunks
}

func crc(data []byte, size int) (count, check int64) {
	for at := 0; at+size <= len(data); at += size {
		count++
		check += int64(crc32.Checksum(data[at:at+size], castagnoli))
	}
	return count, check
}

const inner = 20

type message interface {
	SetVersion(int16)
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

func fresh(name string, version int16) message {
	var m message
	switch name {
	case "MetadataResponse":
		m = kmsg.NewPtrMetadataResponse()
	case "FetchRequest":
		m = kmsg.NewPtrFetchRequest()
	case "ProduceRequest":
		m = kmsg.NewPtrProduceRequest()
	case "ApiVersionsResponse":
		m = kmsg.NewPtrApiVersionsResponse()
	case "HeartbeatRequest":
		m = kmsg.NewPtrHeartbeatRequest()
	case "FetchResponse":
		m = kmsg.NewPtrFetchResponse()
	default:
		panic("unknown message")
	}
	m.SetVersion(version)
	return m
}

var room []byte

func messages(work []string, data []byte, ready message) (count, check int64) {
	version, _ := strconv.Atoi(work[2])
	for i := 0; i < inner; i++ {
		if work[0] == "message-encode" {
			room = ready.AppendTo(room[:0])
			check += int64(len(room))
		} else if err := fresh(work[1], int16(version)).ReadFrom(data); err != nil {
			panic(err)
		}
	}
	return inner, check
}

func main() {
	var data []byte
	var chunks [][]byte // the size of a partition's part of a fetch: about 1 MiB
	decompressor := kgo.DefaultDecompressor()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		if words[0] == "load" {
			var err error
			if data, err = os.ReadFile(words[1]); err != nil {
				panic(err)
			}
			chunks = nil
			fmt.Println("ok")
			continue
		}
		passes, _ := strconv.Atoi(words[2])
		work := strings.Split(words[1], ":") // message-decode:FetchRequest:12
		var ready message
		if len(work) == 3 {
			version, _ := strconv.Atoi(work[2])
			ready = fresh(work[1], int16(version))
			if err := ready.ReadFrom(data); err != nil {
				panic(err)
			}
		}
		if words[1] == "decode" && chunks == nil {
			chunks = split(data)
		}
		wall, busy := time.Now(), cpu()
		var count, check int64
		for ; passes > 0; passes-- {
			count, check = 0, 0
			switch words[1] {
			case "decode":
				for _, chunk := range chunks {
					n, c := decode(chunk, decompressor)
					count, check = count+n, check+c
				}
			case "crc32c-16k":
				count, check = crc(data, 16<<10)
			case "crc32c-1m":
				count, check = crc(data, 1<<20)
			default:
				count, check = messages(work, data, ready)
			}
		}
		fmt.Println(time.Since(wall).Nanoseconds(), cpu()-busy, count, check)
	}
}
