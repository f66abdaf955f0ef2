package shim_test

import (
	"os"

	"github.com/statusd/statusd/runtime/process/shim"
)

// The whole program statusd-shim.
func ExampleMain() {
	main := func() { os.Exit(shim.Main(os.Args)) }
	_ = main
}
