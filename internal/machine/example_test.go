package machine_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/machine"
)

func ExampleDefault() {
	config := machine.Default()
	fmt.Println(config.Units, config.Disks)
	// Output: map[containerd.service:runtime kubelet.service:kubelet] [/]
}
