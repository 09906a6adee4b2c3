// franz-go's kfake: prints the address of its broker, ends with standard input.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster := kfake.MustCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "bench"))
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin)
}
