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

// Options configure a [Manager]. The zero value works: the manager stores statuses and sends
// nothing.
type Options struct {
	// Client sends requests to the API server. If nil, the manager is standalone: the cache, the
	// journal and the subscribers work, and nothing is sent.
	Client Client

	// Pods is the caller's table of the pods on this node. By default the manager keeps its own table, from
	// [Manager.ObservePod] and [Manager.ObserveDelete], and forgets pods that are deleted from the API.
	Pods Pods

	// Safety decides whether a pod could still have running containers. While it could, a terminal
	// phase is withheld from the API. By default the reports decide: a container that was last
	// reported running could run, even if a later status, as of an eviction, does not list it,
	// until the container is reported terminated or [Manager.TerminatePod] is called.
	Safety Safety

	// Reclaim, if set, is called before a pod is deleted from the API.
	Reclaim Reclaim

	// Journal stores the state that must survive a restart. Without a journal, no state survives,
	// and allocations cannot be stored. Package journal implements a whole [Journal]; a program
	// that stores final statuses in its own database implements the two methods of Ends.
	Journal Ends

	// Workers is the maximum number of requests in flight. Within the maximum, the manager adapts
	// the number to the throughput: few for a near server, many over a slow link. A few additional
	// slots are reserved for withdrawals, and requests that hang do not count, see SlowRequest.
	// Default 200: enough to keep a server busy over a link of 200 ms.
	Workers int

	// Share names the part of the manager's pods that a pod belongs to, such as its node if one manager reports the pods of several:
	// package node/fleet does that. Within a class of urgency the parts take turns, however many pods of each part wait, and a part
	// whose requests hang does not delay the other parts. Share must not block and must not call the manager.
	Share func(*v1.Pod) string

	// PreferThroughput keeps as many requests in flight as Workers allows while enough pods wait, unless the server refuses
	// requests. An API server batches concurrent writes, so that throughput grows, but each request takes several times as
	// long. Set it for nodes where only the delivery of the last of many changes matters. Withdrawals still go first.
	PreferThroughput bool

	// QPS and Burst limit the rate of requests. QPS 0 means no limit. Burst defaults to twice QPS.
	QPS   float64
	Burst int

	// RequestTimeout is the timeout of a request. Default 30 s.
	RequestTimeout time.Duration

	// SlowRequest is how long a request may take before it stops counting as one of the Workers, so
	// that pods whose requests hang do not block other pods. At most 48 requests, or as many as
	// Workers if Workers is larger, continue without counting. Default 2 s.
	SlowRequest time.Duration

	// ResyncPeriod is how often all pods are compared with the API's. The comparison is a safety
	// net: reports and observations are handled at once. Default 10 s.
	ResyncPeriod time.Duration

	// Jitter returns a number from 0 to 1: the part of a fifth of a wait that is subtracted to spread
	// retries. It may be called from any goroutine. Default: random. Set Jitter to make a test in
	// virtual time deterministic.
	Jitter func() float64

	// Versions reads the newest resource version of the API server while no other response shows it, to
	// detect that the server was restored from a backup. Managers in one process for one server may share
	// a Versions. By default a manager whose Client is a [VersionReader] reads the version once a minute;
	// managers whose clients [NewClient] has created from one clientset share this request.
	Versions *Versions

	// HistoryChanged, if set, is called when the API server's resource versions were found to have gone back,
	// as after a restore from a backup. The manager then reads all pods itself. But a watch that is still
	// open may deliver nothing until the server reaches the watch's version again: end the watch in this
	// function, and list the pods again. HistoryChanged may be called from any goroutine and must not block.
	HistoryChanged func()

	// AlwaysRead reads each pod from the API server before it is written, as the kubelet does.
	AlwaysRead bool

	// OwnedConditions are the condition types that this agent owns, besides the kubelet's:
	// conditions of these types are sent, keep their transition times, and are removed from the API
	// when they are no longer reported. Conditions of other types belong to other writers; if a
	// report has one, the condition is not sent, and the rest of the report is stored.
	OwnedConditions []v1.PodConditionType

	// CompleteReports completes the reports of [Manager.SetPodStatus] with [podstatus.Complete]:
	// missing containers and conditions, the phase, the addresses. Set it for reporters that know
	// only a part of a status, such as the phase of a job. By default a report is a whole status,
	// as the kubelet's: an owned condition that is missing in the report is removed from the API,
	// including PodScheduled.
	CompleteReports bool

	// FieldManager is the field manager of the manager's writes, by which [Manager.Fights]
	// distinguishes them from the writes of others. Default "statusd". The client of NewClient uses
	// it; the caller's own Client must use the same name.
	FieldManager string

	// Observer, if set, receives every change of every pod.
	Observer Observer

	// Logger receives warnings and errors, and single steps at lower levels. By default warnings and
	// errors go to slog.Default().
	Logger *slog.Logger

	// Registerer, if set, registers the metrics. Several managers may share a Registerer; they then
	// share the metrics too, unless their MetricsLabels differ.
	Registerer prometheus.Registerer

	// MetricsLabels are added to each metric, such as {"node": name}.
	MetricsLabels prometheus.Labels
}

// Pods is the table of the pods of this node. The manager may call it from any goroutine;
// implementations must not call the manager. Returned pods are not modified.
type Pods interface {
	// ByUID returns a pod, not a mirror pod. For pods from the API it should return the newest copy
	// that the watch has delivered.
	ByUID(types.UID) (*v1.Pod, bool)
	// MirrorOf returns the mirror pod of a static pod.
	MirrorOf(*v1.Pod) (*v1.Pod, bool)
	// TranslateUID returns the static pod's UID for the UID of its mirror pod, and any other UID
	// unchanged.
	TranslateUID(types.UID) types.UID
}

// Safety is the condition for publishing a terminal phase.
type Safety interface {
	// CouldHaveRunningContainers may be called from any goroutine, and must not call the manager.
	CouldHaveRunningContainers(*v1.Pod) bool
}

// Reclaim is the stricter condition for deleting a pod from the API: containers gone from
// the runtime, volumes unmounted, cgroup removed.
type Reclaim interface {
	// ResourcesReclaimed may be called from any goroutine, and must not call the manager.
	ResourcesReclaimed(*v1.Pod, *v1.PodStatus) bool
}

// Validate returns all errors in the options.
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
