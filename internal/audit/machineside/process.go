package machineside

import (
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/hostproc"
)

// process finds the kubelet's process, nil if there is none. It reports whether the processes of the host were seen:
// those of a container say nothing, unless a file names the process.
func process(o Options, boot time.Time, before hostproc.Process) (found hostproc.Process, fact *audit.Process, known bool, err error) {
	finder := hostproc.Finder{Root: o.HostRoot, Proc: o.HostProc, PIDFile: o.PIDFile, Name: o.Process}
	p, err := finder.Find(before)
	if err != nil {
		return p, nil, false, err
	}
	if p.Exists() && !p.Ended() {
		return p, &audit.Process{PID: p.PID, Started: p.Started(boot), Stopped: p.Stopped()}, true, nil
	}
	return p, nil, o.PIDFile != "" || o.HostRoot == "/" || hostproc.OfHost(o.HostProc), nil
}
