package machineside

import (
	"path/filepath"
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/hostproc"
)

// process finds the kubelet's process, or returns a nil fact. known reports whether the processes of the host could
// be read: the processes of a container prove nothing, unless a PID file names the process.
func process(o Options, boot time.Time, before hostproc.Process) (found hostproc.Process, fact *audit.Process, known bool, err error) {
	finder := hostproc.Finder{Root: o.HostRoot, Proc: o.HostProc, PIDFile: o.PIDFile, Name: o.Process}
	p, err := finder.Find(before)
	if err != nil {
		return p, nil, false, err
	}
	if p.Exists() && !p.Ended() {
		groups, err := hostproc.Resolve(o.HostRoot, o.CgroupRoot)
		if err != nil {
			groups = o.CgroupRoot // the control groups of pods are read too, and the error is reported there
		}
		frozen := hostproc.Frozen(o.HostProc, filepath.Join(o.HostRoot, groups), p.PID)
		return p, &audit.Process{PID: p.PID, Started: p.Started(boot), Stopped: p.Stopped(), Frozen: frozen}, true, nil
	}
	return p, nil, o.PIDFile != "" || o.HostRoot == "/" || hostproc.OfHost(o.HostProc), nil
}
