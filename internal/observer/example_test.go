package observer_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/observer"
)

// By default an observer writes nothing; what it may write is switched on one by one.
func ExampleDefault() {
	config := observer.Default()
	fmt.Println(config.Outputs.Events, config.Outputs.Conditions, len(config.Repair.Kinds))
	config.Outputs.Events = true
	config.Repair.Kinds = []string{"ContainerWithoutPod"}
	fmt.Println(config.Validate())
	// Output:
	// false false 0
	// <nil>
}
