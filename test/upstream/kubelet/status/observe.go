package status

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/upstream/kubelet/history"
)

// PodStartupLatencyStateHelper measures how long pods take to start.
type PodStartupLatencyStateHelper interface {
	// RecordStatusUpdated is called when the API server has a status of the pod.
	RecordStatusUpdated(pod *v1.Pod)
	DeletePodStartupState(podUID types.UID)
}

// registry returns the metrics of statusd, which are part of the kubelet's /metrics.
var registry = sync.OnceValue(func() *prometheus.Registry {
	r := prometheus.NewRegistry()
	legacyregistry.RawMustRegister(r)
	return r
})

// observer keeps the kubelet's metrics of statuses, the start-up latency and the history. The manager calls it under a lock.
type observer struct {
	table   *table
	startup PodStartupLatencyStateHelper
	history *history.Store

	mu     sync.Mutex // guards unsent
	unsent map[types.UID]unsent
}

// unsent is what the API server has not accepted of a pod.
type unsent struct {
	since   time.Time
	version uint64
	status  *v1.PodStatus
}

func newObserver(table *table, startup PodStartupLatencyStateHelper, history *history.Store) *observer {
	return &observer{table: table, startup: startup, history: history, unsent: map[types.UID]unsent{}}
}

func (o *observer) Changed(c podstatus.Change) {
	o.history.Changed(c)
	countEnds(c.Old.InitContainerStatuses, c.New.InitContainerStatuses, metrics.InitContainer)
	countEnds(c.Old.ContainerStatuses, c.New.ContainerStatuses, metrics.Container)
	countEnds(c.Old.EphemeralContainerStatuses, c.New.EphemeralContainerStatuses, metrics.EphemeralContainer)

	o.mu.Lock()
	defer o.mu.Unlock()
	u, ok := o.unsent[c.UID]
	if !ok {
		u.since = c.At
	}
	u.version, u.status = c.Version, c.New
	o.unsent[c.UID] = u
}

// countEnds counts the containers that have ended with this change.
func countEnds(before, after []v1.ContainerStatus, kind string) {
	running := func(name string) bool {
		for i := range before {
			if before[i].Name == name {
				return before[i].State.Terminated == nil
			}
		}
		return true
	}
	for i := range after {
		if end := after[i].State.Terminated; end != nil && running(after[i].Name) {
			metrics.TerminatedContainersTotal.WithLabelValues(kind, strconv.Itoa(int(end.ExitCode)), end.Reason).Inc()
		}
	}
}

func (o *observer) Accepted(uid types.UID, version uint64, at time.Time) {
	o.history.Accepted(uid, version, at)
	u, ok := o.accepted(uid, version)
	if !ok {
		return
	}
	// Since the first change that the API server did not have. The stock kubelet counts from the first change of the pod ever.
	metrics.PodStatusSyncDuration.Observe(at.Sub(u.since).Truncate(time.Millisecond).Seconds())
	if pod, ok := o.table.ByUID(uid); ok && o.startup != nil {
		sent := *pod
		sent.Status = *u.status
		o.startup.RecordStatusUpdated(&sent)
	}
}

func (o *observer) accepted(uid types.UID, version uint64) (unsent, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u, ok := o.unsent[uid]
	if ok && version >= u.version {
		delete(o.unsent, uid)
	}
	return u, ok
}

func (o *observer) Failed(u podstatus.Undelivered) { o.history.Failed(u) }

func (o *observer) Removed(uid types.UID, at time.Time) {
	o.history.Removed(uid, at)
	o.table.removed(uid)
	o.mu.Lock()
	delete(o.unsent, uid)
	o.mu.Unlock()
	if o.startup != nil {
		o.startup.DeletePodStartupState(uid)
	}
}
