package kubeletstate_test

import (
	"fmt"
	"path/filepath"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/journal/kubeletstate"
)

// The allocations of a node's pods outlive the change from a kubelet.
func ExampleImport() {
	checkpoint, err := kubeletstate.Import(journal.NewMemory(), filepath.Join("testdata", "1.33-allocated_pods_state"))
	if err != nil {
		panic(err)
	}
	fmt.Println(checkpoint.Generation)
	// Output: 1.33
}
