package shim

import (
	"fmt"
	"os"

	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// Program is the name under which the runtime looks for the program.
const Program = "statusd-shim"

// Main runs the container in the directory that is the last of the arguments, or a command
// inside it that follows, to its end, and returns the exit code of the program.
func Main(arguments []string) int {
	if len(arguments) > 3 && (arguments[2] == shim.ExecArgument || arguments[2] == shim.ExecTerminalArgument) {
		return shim.ExecMain(arguments[1], arguments[2] == shim.ExecTerminalArgument, arguments[3:])
	}
	if len(arguments) != 2 {
		fmt.Fprintf(os.Stderr, "%s is started by statusd itself, with the directory of a container\n", Program)
		return 2
	}
	return shim.Main(arguments[1])
}
