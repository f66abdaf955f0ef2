package status

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
)

// Options say what a [Manager] works with. The zero value works: it keeps statuses and sends
// nothing.
type Options struct {
	// Client reaches the API server. Without one the manager is standalone: the cache,
	// the journal and the subscribers work, and nothing is sent.
	Client Client

	// Pods is a table of the pods known on this node that the caller keeps. By default the manager keeps one itself,
	// from [Manager.ObservePod] and [Manager.ObserveDelete], and then a pod that is deleted from the API is forgotten.
	Pods Pods

	// Safety decides whether a pod could still have running containers. While it could, a
	// terminal phase is kept from the API. By default that follows from the reports: a
	// container could run that was last reported running, also if a later status does not
	// mention it, as that of an eviction; until it is reported otherwise, or the pod was
	// terminated with [Manager.TerminatePod].
	Safety Safety

	// Reclaim, if set, is asked before a pod is deleted from the API.
	Reclaim Reclaim

	// Journal remembers what must survive a restart. Without one, nothing does, and
	// allocations cannot be stored. Package journal has a whole [Journal]; a program that keeps the
	// ends of pods in a database of its own writes the two methods of Ends.
	Journal Ends

	// Workers is the most requests that may be in flight at once. How many are within that
	// follows what pays: few on a near server, many over a slow link. A few slots beyond it
	// are kept for withdrawals, and requests that hang do not count, see SlowRequest.
	// Default 200: enough to keep a server busy over a link of 200 ms.
	Workers int

	// Share names the part of the manager's pods that a pod belongs to, such as its node if one manager reports the pods of
	// several: package node/fleet does that. Within a class of urgency the parts then have their turns one after the other, however many
	// pods of each wait, and a part whose requests hang delays no other. It must be quick, and must not call back.
	Share func(*v1.Pod) string

	// PreferThroughput keeps as many requests in flight as Workers allows while there is that much to send, unless the
	// server refuses some. An API server stores requests together that wait at the same time, so that more of them are done in
	// a second, while each of them takes several times as long. For nodes where only the time until the last of
	// many changes is there counts. Withdrawals still go first.
	PreferThroughput bool

	// QPS and Burst limit the requests. QPS 0 means no limit. Burst defaults to twice QPS.
	QPS   float64
	Burst int

	// RequestTimeout ends a request that gets no answer. Default 30 s.
	RequestTimeout time.Duration

	// SlowRequest is how long a request may take before it stops counting as one of the
	// Workers, so that pods whose requests hang cannot keep others from being served. At
	// most 48 requests, or as many as Workers if that is more, go on without counting.
	// Default 2 s.
	SlowRequest time.Duration

	// ResyncPeriod is how often all pods are compared with the API's. It is a safety net:
	// changes and observations are acted upon at once. Default 10 s.
	ResyncPeriod time.Duration

	// Jitter returns a number from 0 to 1: how much of the fifth of a wait by which tries are spread
	// is taken off. It may be called from any goroutine. Default: random. A test in virtual time that
	// sets it can be repeated.
	Jitter func() float64

	// Versions reads the newest resource version of the API server while nothing else shows it, to notice
	// that the server was restored from a backup. Managers of one process and one server may share one. By
	// default a manager whose Client is a [VersionReader] asks once a minute, and managers whose clients
	// [NewClient] has made of one clientset ask once a minute together.
	Versions *Versions

	// HistoryChanged, if set, is called when the API server's resource versions were found to have gone
	// back, as after a restore from a backup. The manager then reads all pods by itself. But a watch that has
	// stayed open may show nothing until the server has reached its version again: end it here, and list the
	// pods again. It may be called from any goroutine and must not block.
	HistoryChanged func()

	// AlwaysRead reads each pod from the API server before it is written, as the kubelet does.
	AlwaysRead bool

	// OwnedConditions are condition types of this agent's own, besides those that the kubelet
	// owns: they are sent, their transition times are kept, and they are removed from the API
	// when they are reported no more. Conditions of any other type belong to others; if a
	// report names one, the rest of the report is stored and the condition is not sent.
	OwnedConditions []v1.PodConditionType

	// CompleteReports fills in what a report of [Manager.SetPodStatus] leaves out with
	// [podstatus.Complete]: the containers and conditions that it does not mention, the phase, the
	// addresses. For reporters that know only a part of a status, such as the phase of a job. By
	// default a report is taken as whole, as the kubelet's is: an owned condition that it does not
	// have is removed from the API, PodScheduled included.
	CompleteReports bool

	// FieldManager is the name under which the API server records the manager's writes, and by
	// which [Manager.Fights] distinguishes them from those of others. Default "statusd". The client of
	// NewClient writes under it; a Client of the caller's own has to do the same.
	FieldManager string

	// Observer learns of every step of every pod, if set.
	Observer Observer

	// Logger takes warnings and errors, and at lower levels single steps. By default warnings and errors
	// go to slog.Default(), as those of net/http go to the default logger of package log.
	Logger *slog.Logger

	// Registerer takes the metrics, if set. Several managers may share one; they then share the
	// metrics too, unless their MetricsLabels differ.
	Registerer prometheus.Registerer

	// MetricsLabels are added to each metric, such as {"node": name}.
	MetricsLabels prometheus.Labels
}

// Pods is what the manager needs to know of the pods of this node. The manager may call
// it from any goroutine; implementations must not call back. What they return is not changed.
type Pods interface {
	// ByUID returns a pod, not a mirror pod. For pods that come from the API it should
	// be the newest copy that the watch has delivered.
	ByUID(types.UID) (*v1.Pod, bool)
	// MirrorOf returns the mirror pod of a static pod.
	MirrorOf(*v1.Pod) (*v1.Pod, bool)
	// TranslateUID returns the static pod's UID for that of its mirror, any other as it is.
	TranslateUID(types.UID) types.UID
}

// Safety is the condition for publishing a terminal phase.
type Safety interface {
	// CouldHaveRunningContainers may be called from any goroutine, and must not call back.
	CouldHaveRunningContainers(*v1.Pod) bool
}

// Reclaim is the stricter condition for deleting a pod from the API: containers gone from
// the runtime, volumes unmounted, cgroup removed.
type Reclaim interface {
	// ResourcesReclaimed may be called from any goroutine, and must not call back.
	ResourcesReclaimed(*v1.Pod, *v1.PodStatus) bool
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	problems := o.typedNils()
	if client, ok := o.Client.(ownClient); ok && len(problems) == 0 {
		if err := client.validate(); err != nil {
			problems = append(problems, err)
		}
	}
	atLeast := func(name string, got, least float64) {
		if got < least {
			problems = append(problems, fmt.Errorf("%s is %v: it must be at least %v", name, got, least))
		}
	}
	atLeast("Workers", float64(o.Workers), 0)
	atLeast("QPS", o.QPS, 0)
	atLeast("Burst", float64(o.Burst), 0)
	atLeast("RequestTimeout", o.RequestTimeout.Seconds(), 0)
	atLeast("SlowRequest", o.SlowRequest.Seconds(), 0)
	atLeast("ResyncPeriod", o.ResyncPeriod.Seconds(), 0)
	for _, t := range o.OwnedConditions {
		if t == "" || podrules.IsShared(t) {
			problems = append(problems, fmt.Errorf("OwnedConditions names %q: it must name types that no other component writes", t))
		}
	}
	return errors.Join(problems...)
}

// typedNils finds the options that hold a nil pointer: they are not nil to Go, and would be used.
func (o *Options) typedNils() []error {
	var problems []error
	options := reflect.ValueOf(o).Elem()
	for i := range options.NumField() {
		field := options.Field(i)
		if field.Kind() != reflect.Interface || field.IsNil() {
			continue
		}
		if value := field.Elem(); value.Kind() == reflect.Pointer && value.IsNil() {
			problems = append(problems, fmt.Errorf("%s is a nil %s: leave the option unset instead", options.Type().Field(i).Name, value.Type()))
		}
	}
	return problems
}

func (o *Options) setDefaults() {
	o.Workers = cmp.Or(o.Workers, 200)
	o.FieldManager = cmp.Or(o.FieldManager, DefaultFieldManager)
	o.Burst = cmp.Or(o.Burst, max(1, int(2*o.QPS)))
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 30*time.Second)
	o.SlowRequest = cmp.Or(o.SlowRequest, 2*time.Second)
	o.ResyncPeriod = cmp.Or(o.ResyncPeriod, 10*time.Second)
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if client, ok := o.Client.(ownClient); ok {
		o.Client = client.writingAs(o.FieldManager)
	}
	if reader, ok := o.Client.(VersionReader); ok && o.Versions == nil {
		o.Versions = defaultVersions(reader)
	}
	if len(o.MetricsLabels) > 0 && o.Registerer != nil {
		o.Registerer = prometheus.WrapRegistererWith(o.MetricsLabels, o.Registerer)
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(warnings{slog.Default().Handler()})
	}
}
