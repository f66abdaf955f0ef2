package process

import (
	"fmt"
	"os"

	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// shimArgument is the first argument of a program that shall be a shim.
const shimArgument = "process-shim"

// IsShim says whether this process was started as a shim. A program that uses this
// runtime with the default ShimCommand begins its main, and the TestMain of its tests,
// with
//
//	if process.IsShim() {
//		os.Exit(process.ShimMain())
//	}
func IsShim() bool { return len(os.Args) > 1 && os.Args[1] == shimArgument }

// ShimMain runs one container to its end and returns the exit code of the shim.
func ShimMain() int {
	if len(os.Args) != 3 {
		fmt.Fprintf(os.Stderr, "%s is started by statusd itself, with the directory of a container\n", shimArgument)
		return 2
	}
	return shim.Main(os.Args[2])
}
