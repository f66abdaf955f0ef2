package shim

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// Program is the name under which the runtime looks for the program.
const Program = "statusd-shim"

// Main runs the container in the working directory to its end, or a command inside the container,
// and returns the exit code of the program. The first argument after the program is the ID of the
// container; the command follows the ID.
func Main(arguments []string) int {
	if len(arguments) < 2 {
		fmt.Fprintf(os.Stderr, "%s is started by statusd itself, with the ID of a container\n", Program)
		return 2
	}
	id, rest := arguments[1], arguments[2:]
	// A statusd of an earlier release that still runs names the directory, which ends with the ID.
	if filepath.IsAbs(id) {
		if err := os.Chdir(id); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		id = shim.Scheme + filepath.Base(id)
	}
	switch {
	case len(rest) == 0:
		return shim.Main(id)
	case len(rest) > 1 && (rest[0] == shim.ExecArgument || rest[0] == shim.ExecTerminalArgument):
		return shim.ExecMain(rest[0] == shim.ExecTerminalArgument, rest[1:])
	}
	fmt.Fprintf(os.Stderr, "%s: unknown arguments %q\n", Program, rest)
	return 2
}
