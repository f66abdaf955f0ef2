package machineside

import (
	"errors"
	"io/fs"
	"regexp"
	"syscall"
	"time"

	"github.com/statusd/statusd/observe"
)

// uid is what the UIDs of pods look like: those of the API, and the hashes of static pods.
var uid = regexp.MustCompile(`^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// read reads everything once.
func read(o Options, now time.Time) (observe.Machine, error) {
	h := &host{root: o.HostRoot, left: o.MaxEntries}
	var facts observe.Machine
	var problems [4]error
	facts.PodDirs, problems[0] = podDirs(h, o, now)
	facts.Cgroups, problems[1] = cgroups(h, o, now)
	facts.Boot, problems[2] = boot(h, o)
	facts.Process, facts.ProcessKnown, problems[3] = process(h, o, facts.Boot)
	facts.Manifests, facts.ManifestsKnown = manifests(h, o)
	return facts, errors.Join(problems[:]...)
}

// vanished reports whether something was removed while it was looked at.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ESRCH)
}
