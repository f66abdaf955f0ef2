package guardsetup_test

import (
	"context"
	"fmt"
	"os"

	"github.com/statusd/statusd/internal/guard/guardsetup"
)

func Example() {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	config := guardsetup.Default() // observes, and restarts nothing
	config.Enabled, config.HealthzURL = true, ""
	config.Unit, config.RuntimeUnit = "", ""
	g, err := guardsetup.New(config, guardsetup.Options{Node: "node-1", StateDir: dir})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(g.Run(ctx), g.Report().Unit, g.Report().Health)
	// Output: <nil> kubelet unknown
}
