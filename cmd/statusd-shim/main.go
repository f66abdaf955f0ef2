// Statusd-shim is the parent of one container. Statusd starts it; see
// [github.com/statusd/statusd/runtime/process].
package main

import (
	"os"

	_ "github.com/statusd/statusd/internal/linuxonly"
	"github.com/statusd/statusd/runtime/process/shim"
)

func main() { os.Exit(shim.Main(os.Args)) }
