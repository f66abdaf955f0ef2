package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/status"
)

// retrySchedule spaces the attempts of a failed step.
var retrySchedule = backoff.Schedule{First: time.Second, Limit: 5 * time.Minute}

const (
	// hintInterval is how often at most the status of a pod is read because of notifications that cannot be used.
	hintInterval = time.Second
	// resolving is how many environments are resolved at once. A clientset with a rate limit sends its requests in the order in which
	// they came, so a lease waits for the config maps of all pods that are resolved.
	resolving = 8
)

// kubelet passes pods to a provider and reports their statuses.
type kubelet struct {
	options Options
	log     *slog.Logger
	manager *status.Manager
	client  status.Client
	objects runtime.EnvironmentObjects
	hostIPs func() []string
	event   func(pod *v1.Pod, container, eventType, reason, message string)
	calls   *calls
	// resolves has a slot for each environment that may be resolved at once.
	resolves chan struct{}
	repairs  *prometheus.CounterVec
	poll     time.Duration
	relist   func() // lists the API's pods again
	changed  func() // the Node is to be reported again

	mu      sync.Mutex // guards what follows
	pods    map[types.NamespacedName]*pod
	listed  bool            // the API's pods were listed
	ready   bool            // and those of the provider
	running context.Context // nil: Run does not run, or has ended
	turning sync.WaitGroup  // goroutines that take turns or look at notifications
	listing chan struct{}   // closed when the API's pods were listed
	unknown error           // why the provider's pods are not known
	// notifying: NotifyPods has returned.
	notifying bool
}

func newKubelet(o Options, client status.Client) (*kubelet, error) {
	k := &kubelet{
		options: o, log: o.Logger, client: client, poll: o.PollInterval,
		pods: map[types.NamespacedName]*pod{}, listing: make(chan struct{}), resolves: make(chan struct{}, resolving),
		event:   func(*v1.Pod, string, string, string, string) {},
		relist:  func() {},
		changed: func() {},
		hostIPs: func() []string { return o.Addresses },
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_provider_repairs_total", Help: "Repairs of what the provider reported, by kind.",
		}, []string{"kind"}),
	}
	if _, ok := o.Provider.(PodNotifier); ok {
		k.poll = o.CheckInterval
	}
	k.calls = &calls{slots: make(chan struct{}, o.Calls), timeout: o.CallTimeout, log: o.Logger, counted: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statusd_provider_calls_total", Help: "Calls of the provider, by method and result.",
	}, []string{"method", "result"})}
	if o.Registerer != nil {
		for _, counter := range []**prometheus.CounterVec{&k.repairs, &k.calls.counted} {
			if err := register(o.Registerer, counter); err != nil {
				return nil, err
			}
		}
	}
	var err error
	k.manager, err = status.New(status.Options{Client: client, Journal: o.Journal, Logger: o.Logger, Registerer: o.Registerer, HistoryChanged: func() { k.relist() }})
	return k, err
}

// register registers a counter, or uses the counter of another node in the process with the same Registerer.
func register(registerer prometheus.Registerer, counter **prometheus.CounterVec) error {
	err := registerer.Register(*counter)
	if there := (prometheus.AlreadyRegisteredError{}); errors.As(err, &there) {
		if existing, ok := there.ExistingCollector.(*prometheus.CounterVec); ok {
			*counter = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("virtualkubelet: metrics: %w", err)
	}
	return nil
}

// handle takes a change of the API's pods.
func (k *kubelet) handle(c source.Change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range c.Pods {
		p := k.named(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		if c.Op == source.Remove {
			k.manager.ObserveDelete(pod)
			if p.api != nil && p.api.UID == pod.UID {
				p.api, p.notBefore = nil, time.Time{}
			}
		} else {
			k.manager.ObservePod(pod)
			if p.api == nil || p.api.UID != pod.UID || p.api.DeletionTimestamp == nil && pod.DeletionTimestamp != nil {
				p.notBefore = time.Time{} // another step is due
			}
			p.api = pod
			if p.given != nil && p.given.UID == pod.UID && !changed(p.given, pod) {
				p.given = pod // so that turns need not compare
			}
		}
		k.wake(p)
	}
	if c.Op == source.Set && !k.listed {
		k.listed = true
		close(k.listing)
	}
}

// named returns the pods of a name. The caller holds mu.
func (k *kubelet) named(name types.NamespacedName) *pod {
	p := k.pods[name]
	if p == nil {
		p = &pod{name: name, noted: map[Kind]bool{}}
		k.pods[name] = p
	}
	return p
}

// run passes pods to the provider until ctx ends.
func (k *kubelet) run(ctx context.Context) error {
	if notifier, ok := k.options.Provider.(PodNotifier); ok {
		late := time.AfterFunc(slowCall, func() { k.setUnknown(errNotifying, func() bool { return !k.notifying }) })
		err := k.calls.do(ctx, "NotifyPods", "", func(context.Context) error { notifier.NotifyPods(ctx, k.notify); return nil })
		k.set(func() { k.notifying = true })
		if !late.Stop() {
			k.setUnknown(nil, func() bool { return true })
		}
		if err != nil {
			return fmt.Errorf("virtualkubelet: %w", err)
		}
	}
	select {
	case <-k.listing:
	case <-ctx.Done():
		return nil
	}
	found, ok := k.found(ctx)
	if !ok {
		return nil
	}
	k.mu.Lock()
	k.adopt(found)
	k.ready, k.running = true, ctx
	for _, p := range k.pods {
		k.wake(p)
	}
	k.mu.Unlock()

	<-ctx.Done()
	k.mu.Lock()
	k.running = nil
	for _, p := range k.pods {
		if p.timer != nil {
			p.timer.Stop()
		}
	}
	k.mu.Unlock()
	k.turning.Wait()
	return nil
}

// found calls GetPods until it succeeds: unknown pods could otherwise be created a second time.
func (k *kubelet) found(ctx context.Context) (pods []*v1.Pod, ok bool) {
	for attempt := 1; ; attempt++ {
		answered := false // guarded by mu: the timer may fire while the call returns
		late := time.AfterFunc(slowCall, func() { k.setUnknown(errUnknownPods, func() bool { return !answered }) })
		err := k.calls.do(ctx, "GetPods", "", func(ctx context.Context) error {
			answer, err := k.options.Provider.GetPods(ctx)
			for _, pod := range answer {
				if pod != nil {
					pods = append(pods, pod.DeepCopy())
				}
			}
			return err
		})
		late.Stop()
		why := error(nil)
		if err != nil {
			why = fmt.Errorf("%w: %w", errUnknownPods, err)
		}
		k.setUnknown(why, func() bool { answered = true; return true })
		if err == nil {
			return pods, true
		}
		pods = nil
		k.log.Warn("the provider does not say which pods it has, retrying", "attempt", attempt, "err", err)
		if !backoff.Sleep(ctx, min(retrySchedule.Random(attempt), 30*time.Second)) {
			return nil, false
		}
	}
}

var (
	errUnknownPods = errors.New("the provider has not said which pods it has")
	errNotifying   = errors.New("the provider's NotifyPods has not returned")
)

// setUnknown records why the provider's pods are unknown, if holds returns true under mu. Meanwhile the Node is not Ready, otherwise it would get pods
// that it cannot start.
func (k *kubelet) setUnknown(why error, holds func() bool) {
	k.set(func() {
		if holds() {
			k.unknown = why
		}
	})
	k.changed()
}

// adopt takes over the pods that the provider has at the start, except pods of other nodes that share its account. The caller
// holds mu.
func (k *kubelet) adopt(found []*v1.Pod) {
	for _, pod := range found {
		if pod.Name == "" || pod.Spec.NodeName != "" && pod.Spec.NodeName != k.options.NodeName {
			continue
		}
		p := k.named(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		p.held, p.adopted = pod, true
		if p.api == nil {
			continue
		}
		status := k.status(p.api)
		if !isSame(pod, p.api, &status) {
			continue
		}
		switch pod.UID {
		case p.api.UID:
		case "":
			k.repaired(p, p.api, Repaired{Kind: NoUID, Text: "the provider keeps no UIDs; the pod was found by its name"})
		default:
			k.repaired(p, p.api, Repaired{Kind: OtherUID, Text: fmt.Sprintf("the provider has the pod under the UID %s; the pod was found by its name", pod.UID)})
		}
		p.held, p.given = p.api, p.api
		p.ended = podstatus.IsTerminal(status.Phase)
	}
}

// status is the newest status of a pod.
func (k *kubelet) status(pod *v1.Pod) v1.PodStatus {
	if s, ok := k.manager.GetPodStatus(pod.UID); ok {
		return s
	}
	return *pod.Status.DeepCopy()
}

// wake schedules a turn for a pod. The caller holds mu.
func (k *kubelet) wake(p *pod) {
	if !k.ready || k.running == nil {
		return
	}
	if p.active {
		p.again = true
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.active = true
	ctx := k.running
	k.turning.Go(func() { k.turns(ctx, p) })
}

// turns takes the steps of a pod until no step is due.
func (k *kubelet) turns(ctx context.Context, p *pod) {
	for ctx.Err() == nil {
		k.mu.Lock()
		p.again = false
		var current v1.PodStatus
		if p.api != nil {
			current = k.status(p.api)
		}
		poll := k.poll
		switch {
		case p.hinted:
			poll = min(poll, hintInterval)
		case !p.missing.IsZero(), p.deleted:
			poll = min(poll, k.options.PollInterval)
		}
		todo, wait := p.next(&current, poll, time.Now())
		api, held := p.api, p.held
		switch todo {
		case forget:
			delete(k.pods, p.name)
			p.active = false
			k.mu.Unlock()
			return
		case idle:
			p.active = false
			if wait > 0 {
				wait += time.Duration((rand.Float64() - 0.5) * 0.2 * float64(wait)) // not all pods at once
				p.timer = time.AfterFunc(max(wait, time.Millisecond), func() {
					k.mu.Lock()
					defer k.mu.Unlock()
					k.wake(p)
				})
			}
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		err := k.take(ctx, p, todo, api, held)
		k.mu.Lock()
		attempts := k.took(p, todo, err)
		k.mu.Unlock()
		if err != nil && ctx.Err() == nil && !errors.Is(err, errStillThere) {
			k.log.Warn("step failed, retrying", "pod", p.name.String(), "step", todo, "attempt", attempts, "err", err)
		}
	}
}

// took records the result of a step, and returns how often the step has failed in a row. A failing UpdatePod does not delay the other
// steps: the status of the pod is still read. The caller holds mu.
func (k *kubelet) took(p *pod, todo step, err error) int {
	attempts, after := &p.attempts, &p.notBefore
	if todo == update {
		attempts, after = &p.updates, &p.updateAfter
	}
	if err == nil {
		*attempts = 0
		return 0
	}
	*attempts++
	wait := retrySchedule.Random(*attempts)
	if errors.Is(err, errStillThere) {
		wait = min(wait, k.options.PollInterval)
	} else if todo == ask || todo == remove {
		wait = min(wait, time.Minute)
	}
	*after = time.Now().Add(wait)
	return *attempts
}

// String returns the name of the step, for logs.
func (s step) String() string {
	return [...]string{"idle", "forget", "remove former pod", "end", "lost", "create", "delete", "update", "ask"}[s]
}

// take takes one step. After an error the step is retried later.
func (k *kubelet) take(ctx context.Context, p *pod, todo step, api, held *v1.Pod) error {
	switch todo {
	case removeHeld:
		return k.removeFormer(ctx, p, held)
	case endUnheld:
		return k.end(p, api)
	case declareLost:
		return k.lose(ctx, p, api)
	case create:
		return k.create(ctx, p, api)
	case remove:
		return k.delete(ctx, p, api)
	case update:
		return k.update(ctx, p, api)
	}
	return k.ask(ctx, p, api)
}

// set changes the state of a pod under the lock.
func (k *kubelet) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}
