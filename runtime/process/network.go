package process

import "github.com/statusd/statusd/runtime"

var _ runtime.HostNetwork = (*Runtime)(nil)

// SharesHostNetwork implements [runtime.HostNetwork]: a process listens on the ports of
// the machine.
func (r *Runtime) SharesHostNetwork() bool { return true }
