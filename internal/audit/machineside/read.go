package machineside

import (
	"errors"
	"io/fs"
	"regexp"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/hostproc"
)

// uid matches the UIDs of pods: the API's UIDs, and the hashes of static pods.
var uid = regexp.MustCompile(`^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// read reads everything once; before is the kubelet's process as it was last seen.
func read(o Options, before hostproc.Process, now time.Time) (reading, error) {
	h := &host{root: o.HostRoot, left: o.MaxEntries}
	var r reading
	facts := &r.facts
	var problems [4]error
	facts.PodDirs, problems[0] = podDirs(h, o, now)
	facts.Cgroups, problems[1] = cgroups(h, o, now)
	facts.Boot, problems[2] = hostproc.Boot(o.HostProc)
	r.process, facts.Process, facts.ProcessKnown, problems[3] = process(o, facts.Boot, before)
	facts.Identity = identity(h, o.HostProc)
	facts.Addresses = addresses(h, o.HostProc, r.process.PID)
	facts.Manifests, r.manifests = manifests(h, o)
	facts.ManifestsKnown = r.manifests == nil
	return r, errors.Join(problems[:]...)
}

// vanished reports whether something was removed while it was looked at.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ESRCH)
}
