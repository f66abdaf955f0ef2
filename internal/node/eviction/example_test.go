package eviction_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/node/eviction"
)

// Thresholds are written as those of the kubelet.
func ExampleConfig_Thresholds() {
	thresholds, err := eviction.Config{
		Hard:            map[string]string{"memory.available": "100Mi"},
		Soft:            map[string]string{"nodefs.available": "15%"},
		SoftGracePeriod: map[string]string{"nodefs.available": "2m"},
	}.Thresholds()
	for _, t := range thresholds {
		fmt.Println(t.Signal, "grace", t.Grace)
	}
	fmt.Println(err)
	// Output:
	// memory.available grace 0s
	// nodefs.available grace 2m0s
	// <nil>
}
