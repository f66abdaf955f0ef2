package status

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/internal/backoff"
)

// Every wait in this package follows one of these schedules, each with an upper bound. The count of
// attempts restarts at 1 when the cause of the wait changes or is gone.
//
//	a pod waits at most  because                                      what ends the wait early
//	30 s                 its request failed by the server's fault     a successful request of another pod: within 2 s (one is tried each 5 s);
//	                                                                  its loss of readiness or end: within 1 s
//	30 s                 its request was refused, or failed alone     a report that changes its status: within 1 s
//	10 s                 it failed, readiness or phase differ, and
//	                     the server answers, or serves other pods     the same; not if it has failed with this pod alone, or found it too
//	                                                                  large, for 10 minutes;
//	                                                                  as long as the server has asked for with regard to this pod
//	10 s                 it waits for something on this node          a report of the pod
//	5 s                  only details have changed, of many pods      a report that changes more, Flush
//	10 s                 the same, of a pod in deletion               the same
//	1 min                a write without an answer may still be
//	                     carried out                                  the watch shows the pod, a report that changes its status
//	10 min               the API server does not have the pod         the pod is observed
//	5 min                another writer keeps changing it back        a report of the pod
//	10 s                 the same, and readiness or phase differ      a report of the pod
//	10 s                 the server stores another readiness or phase a sign that the server stores the status as sent again; a report of the pod
//	50 s                 the server stores other fields differently   another pod of the node whose status is stored as sent again; a report of the pod
//	50 s                 the server refuses fields                    a report that changes them
//	10 min               fields make it fail, or are too large        a report that changes them
//	30 s (all pods)      the server asked for a pause                 a probe that succeeds or is refused, one each 5 s
var (
	// retryBackoff spaces the tries of a pod whose request failed.
	retryBackoff = backoff.Schedule{First: 250 * time.Millisecond, Limit: 30 * time.Second}
	// recheckBackoff spaces the looks at a pod that waits for something on this node:
	// containers to stop, resources to be reclaimed.
	recheckBackoff = backoff.Schedule{First: time.Second, Limit: 10 * time.Second}
	// detailBackoff is for how long details wait for the pod's next report. A pod that starts runs moments after it has a sandbox, or
	// waits for an image. Kubelets before 1.35 reported the sandbox only once all images were pulled.
	detailBackoff = backoff.Schedule{First: 5 * time.Second, Limit: 5 * time.Second}
	// lastDetailBackoff is the same for a pod in deletion. Its end is near, but not within moments if its containers take a while to
	// stop.
	lastDetailBackoff = backoff.Schedule{First: 10 * time.Second, Limit: 10 * time.Second}
	// goneBackoff spaces the looks for a pod that the API server does not have.
	goneBackoff = backoff.Schedule{First: 30 * time.Second, Limit: 10 * time.Minute}
	// fightBackoff spaces the writes to a pod that another writer keeps changing back.
	fightBackoff = backoff.Schedule{First: 10 * time.Second, Limit: 5 * time.Minute}
)

const (
	// graveWait is the longest wait of a pod whose readiness or phase differs in the API, while the server serves
	// other pods. A kubelet tries every 10 s.
	graveWait = 10 * time.Second
	// graveFor is for how long that is so if the server answers for this pod alone with an internal error, or that it is too large.
	graveFor = 10 * time.Minute
	// longestPause caps what a server may ask for: a proxy's maintenance page says
	// Retry-After: 86400, and no status of the node would be sent for a day.
	longestPause = 30 * time.Second
	// probeEvery is how long nothing is tried while the server asks for a pause, until
	// one pod is sent as a probe.
	probeEvery = 5 * time.Second
	// recoverySpread is the time over which the pods that waited for the server are let go
	// once it is back.
	recoverySpread = 2 * time.Second
)

// pauseAsked returns how long the API server asks for a pause, zero if it does not.
func pauseAsked(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	switch {
	case ok && seconds > int(longestPause/time.Second):
		return longestPause
	case ok:
		return max(time.Duration(seconds)*time.Second, time.Second)
	case apierrors.IsTooManyRequests(err):
		return time.Second
	default:
		return 0
	}
}
