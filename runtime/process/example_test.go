package process_test

import (
	"fmt"
	"os"

	"github.com/statusd/statusd/runtime/process"
)

// A program that uses the runtime is also the parent of its containers, unless statusd-shim is beside it.
func Example() {
	if process.IsShim() {
		os.Exit(process.ShimMain())
	}
	dir, err := os.MkdirTemp("", "pods")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	rt, err := process.New(process.Options{Dir: dir, NodeIPs: []string{"192.0.2.7"}, Version: "v1.2.0"})
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	fmt.Println(rt.Version())
	// Output: process://v1.2.0
}
