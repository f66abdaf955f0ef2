package host_test

import (
	"fmt"

	"github.com/statusd/statusd/guard/host"
)

func ExampleDefault() {
	config := host.Default()
	fmt.Println(config.KernelLog, config.Events, config.NodeConditions, config.LoadInterval)
	// Output: auto false false 10s
}
