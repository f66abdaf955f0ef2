package service

import (
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/hostproc"
)

// sameStart is how far the start of a process that systemd has recorded and the kernel's may be apart.
const sameStart = 2 * time.Second

// look adds what the kernel says of a process: whether it is stopped or a zombie. A process of the same number
// that started at another time is one of another PID namespace, or another one; sinceBoot is when it
// must have started, 0 if that is not known. Times since boot do not change when the clock is set.
func look(p guard.Process, proc string, sinceBoot time.Duration) guard.Process {
	if p.PID == 0 {
		return p
	}
	seen, err := hostproc.Read(proc, p.PID)
	if err != nil || sinceBoot != 0 && (seen.SinceBoot-sinceBoot).Abs() > sameStart {
		return p
	}
	p.Stopped, p.Zombie = seen.Stopped(), seen.Ended()
	return p
}
