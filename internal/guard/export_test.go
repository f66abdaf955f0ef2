package guard

import "time"

// SetWrite replaces what writes the file, for disks that do not answer.
func (g *Guard) SetWrite(write func(path string, content []byte) error) { g.write = write }

// RestartedFor is what the guard notes before a restart.
func RestartedFor(s State, reason string, now time.Time) State {
	return s.tried(reason, now).Restarted(now)
}

// LeaseAge is how long the kubelet could have renewed its lease and has not.
func LeaseAge(s State, e Evidence, now time.Time) time.Duration { return s.leaseAge(e, now) }
