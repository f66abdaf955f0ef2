package worker

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// How long a container that keeps ending waits before it is started again, as the
// kubelet has it: not at all the first time, then 10 s, doubling to 5 min. A container
// that ran for longer than 10 min starts from the beginning.
const (
	firstBackOff  = 10 * time.Second
	maxBackOff    = 5 * time.Minute
	stableRunTime = 10 * time.Minute
)

// backOff is the record of one container's restarts. The zero value is the
// back-off of a container that was never restarted. Values are immutable: next returns a new one.
type backOff struct {
	delay   time.Duration // what the next restart has to wait after the exit
	restart time.Time     // when the last restart was
}

// due is when the container that ended at exit may be started again; zero means at once.
// So it is without a record, and for an exit in the future: the clock has stepped back
// since, and how long ago the exit was is unknown.
func (b backOff) due(exit, now time.Time) time.Time {
	if b.forgiven(exit) || exit.After(now) {
		return time.Time{}
	}
	return exit.Add(b.delay)
}

// next is the record after a restart, at now, of the container that ended at exit.
func (b backOff) next(exit, now time.Time) backOff {
	if b.forgiven(exit) {
		return backOff{delay: firstBackOff, restart: now}
	}
	return backOff{delay: min(2*b.delay, maxBackOff), restart: now}
}

func (b backOff) forgiven(exit time.Time) bool {
	return b.restart.IsZero() || exit.Sub(b.restart) > stableRunTime
}

// crashLooping is how the API shows a container that waits for its next start.
func crashLooping(pod *v1.Pod, container string, delay time.Duration) v1.ContainerStateWaiting {
	return v1.ContainerStateWaiting{
		Reason:  reasonCrashLoopBackOff,
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, container, fullName(pod)),
	}
}

// fullName names a pod as messages of the kubelet do.
func fullName(pod *v1.Pod) string {
	return fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
}
