package process

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/statusd/statusd/runtime/process/shim"
)

// shimArgument is the first argument of a program that shall be a shim.
const shimArgument = "process-shim"

// IsShim reports whether this process was started as a shim. A program that uses this
// runtime with the default ShimCommand begins its main, and the TestMain of its tests,
// with
//
//	if process.IsShim() {
//		os.Exit(process.ShimMain())
//	}
func IsShim() bool { return len(os.Args) > 1 && os.Args[1] == shimArgument }

// ShimMain runs one container to its end and returns the exit code of the shim.
func ShimMain() int { return shim.Main(os.Args[1:]) }

// findShim chooses the small program if it is installed next to this one.
func (r *Runtime) findShim() {
	if len(r.options.ShimCommand) > 0 {
		return
	}
	self, err := os.Executable()
	if err == nil {
		small := filepath.Join(filepath.Dir(self), shim.Program)
		if info, statErr := os.Stat(small); statErr == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			r.options.ShimCommand = []string{small}
			return
		}
	}
	r.options.Logger.Info("no "+shim.Program+" next to this program, which is its own shim and needs more memory per container", "program", self, "err", err)
}

// shimCommand is the program and the arguments of the shim of a container. Its working directory is
// the container's directory, because all users can read arguments.
func (o Options) shimCommand(id string) (program string, arguments []string) {
	if len(o.ShimCommand) > 0 {
		return o.ShimCommand[0], append(slices.Clone(o.ShimCommand), id)
	}
	// The kernel resolves this in the child, where it is still this program, even if
	// its file was replaced or deleted meanwhile.
	return "/proc/self/exe", []string{os.Args[0], shimArgument, id}
}
