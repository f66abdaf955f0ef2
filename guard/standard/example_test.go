package standard_test

import (
	"context"
	"fmt"
	"os"

	"github.com/statusd/statusd/guard/standard"
)

func Example() {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	config := standard.Default() // observes, and restarts nothing
	config.Enabled, config.HealthzURL = true, ""
	config.Unit, config.RuntimeUnit, config.Command = "", "", []string{"sleep", "60"}
	g, err := standard.New(config, standard.Options{Node: "node-1", StateDir: dir})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(g.Run(ctx), g.Report().Unit, g.Report().Health)
	// Output: <nil> kubelet unknown
}
