package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
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

// retrySchedule spaces the tries of a step that failed.
var retrySchedule = backoff.Schedule{First: time.Second, Limit: 5 * time.Minute}

// missingPatience is for how many polls a provider may not find a pod that it was given: some clouds show a pod only a
// while after they were asked to create it.
const missingPatience = 3

// kubelet brings pods to a provider and their statuses back.
type kubelet struct {
	options Options
	log     *slog.Logger
	manager *status.Manager
	client  status.Client
	objects runtime.EnvironmentObjects
	hostIPs func() []string
	event   func(pod *v1.Pod, container, eventType, reason, message string)
	calls   *calls
	repairs *prometheus.CounterVec
	poll    time.Duration
	relist  func() // lists the API's pods again

	mu      sync.Mutex // guards what follows
	pods    map[types.NamespacedName]*pod
	listed  bool            // the API's pods were listed
	ready   bool            // and those of the provider
	running context.Context // nil: Run does not run, or has ended
	turning sync.WaitGroup  // goroutines that take turns or look at notifications
	listing chan struct{}   // closed when the API's pods were listed
}

func newKubelet(o Options, client status.Client) (*kubelet, error) {
	k := &kubelet{
		options: o, log: o.Logger, client: client, poll: o.PollInterval,
		pods: map[types.NamespacedName]*pod{}, listing: make(chan struct{}),
		event:   func(*v1.Pod, string, string, string, string) {},
		relist:  func() {},
		hostIPs: func() []string { return o.Addresses },
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_provider_repairs_total", Help: "Repairs of what the provider reported, by kind.",
		}, []string{"kind"}),
	}
	if _, ok := o.Provider.(PodNotifier); ok {
		k.poll = o.CheckInterval
	}
	k.calls = &calls{slots: make(chan struct{}, o.Calls), timeout: o.CallTimeout, counted: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statusd_provider_calls_total", Help: "Calls of the provider, by method and result.",
	}, []string{"method", "result"})}
	if o.Registerer != nil {
		for _, c := range []prometheus.Collector{k.repairs, k.calls.counted} {
			if err := o.Registerer.Register(c); err != nil {
				return nil, fmt.Errorf("virtualkubelet: metrics: %w", err)
			}
		}
	}
	var err error
	k.manager, err = status.New(status.Options{Client: client, Journal: o.Journal, Logger: o.Logger, Registerer: o.Registerer, HistoryChanged: func() { k.relist() }})
	return k, err
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
		}
		k.wake(p)
	}
	if c.Op == source.Set && !k.listed {
		k.listed = true
		close(k.listing)
	}
}

// named returns the pods of a name. It needs mu.
func (k *kubelet) named(name types.NamespacedName) *pod {
	p := k.pods[name]
	if p == nil {
		p = &pod{name: name, noted: map[Kind]bool{}}
		k.pods[name] = p
	}
	return p
}

// run brings pods to the provider until ctx ends.
func (k *kubelet) run(ctx context.Context) error {
	if notifier, ok := k.options.Provider.(PodNotifier); ok {
		if err := k.calls.do(ctx, "NotifyPods", func(context.Context) error { notifier.NotifyPods(ctx, k.notify); return nil }); err != nil {
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

// found asks the provider for its pods until it answers: pods that are not known could be created a second time.
func (k *kubelet) found(ctx context.Context) (pods []*v1.Pod, ok bool) {
	for attempt := 1; ; attempt++ {
		err := k.calls.do(ctx, "GetPods", func(ctx context.Context) error {
			answer, err := k.options.Provider.GetPods(ctx)
			for _, pod := range answer {
				if pod != nil {
					pods = append(pods, pod.DeepCopy())
				}
			}
			return err
		})
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

// adopt takes over the pods that the provider has at the start. It needs mu.
func (k *kubelet) adopt(found []*v1.Pod) {
	for _, pod := range found {
		p := k.named(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		p.held, p.adopted = pod, true
		if p.api == nil {
			continue
		}
		same := pod.UID == p.api.UID
		if pod.UID == "" {
			status := k.status(p.api)
			same = ran(&status) || !startedBefore(pod, p.api)
			k.repaired(p, p.api, Repaired{Kind: NoUID, Text: "the provider keeps no UIDs; the pod was found by its name"})
		}
		if same {
			p.held, p.given = p.api, p.api
			status := k.status(p.api)
			p.ended = podstatus.IsTerminal(status.Phase)
		}
	}
}

// status is the newest status of a pod.
func (k *kubelet) status(pod *v1.Pod) v1.PodStatus {
	if s, ok := k.manager.GetPodStatus(pod.UID); ok {
		return s
	}
	return *pod.Status.DeepCopy()
}

// wake has a pod looked at. It needs mu.
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

// turns takes the steps of a pod until there is none to take now.
func (k *kubelet) turns(ctx context.Context, p *pod) {
	for ctx.Err() == nil {
		k.mu.Lock()
		p.again = false
		var current v1.PodStatus
		if p.api != nil {
			current = k.status(p.api)
		}
		poll := k.poll
		if !p.missing.IsZero() || p.deleted {
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
		if err == nil {
			p.attempts = 0
		} else {
			p.attempts++
			wait := retrySchedule.Random(p.attempts)
			if errors.Is(err, errStillThere) {
				wait = min(wait, k.options.PollInterval)
			} else if todo == ask || todo == remove {
				wait = min(wait, time.Minute)
			}
			p.notBefore = time.Now().Add(wait)
			if ctx.Err() == nil && !errors.Is(err, errStillThere) {
				k.log.Warn("step failed, retrying", "pod", p.name.String(), "step", todo, "attempt", p.attempts, "err", err)
			}
		}
		k.mu.Unlock()
	}
}

// String is for the log.
func (s step) String() string {
	return [...]string{"idle", "forget", "remove former pod", "end", "lost", "create", "delete", "update", "ask"}[s]
}

// take takes one step. An error has it tried again later.
func (k *kubelet) take(ctx context.Context, p *pod, todo step, api, held *v1.Pod) error {
	switch todo {
	case removeHeld:
		return k.removeFormer(ctx, p, held)
	case endUnheld:
		return k.end(p, api)
	case declareLost:
		return k.lose(p, api)
	case create:
		return k.create(ctx, p, api)
	case remove:
		return k.delete(ctx, p, api)
	case update:
		return k.update(ctx, p, api)
	}
	return k.ask(ctx, p, api)
}

// set changes what is known of a pod.
func (k *kubelet) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// end records that nothing of a pod runs and that it may be deleted from the API.
func (k *kubelet) end(p *pod, api *v1.Pod) error {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	if err := k.manager.TerminatePod(api); err != nil && !status.IsWarning(err) && !errors.Is(err, status.ErrUnknownPod) {
		return err
	}
	k.set(func() {
		// A pod of which the end is known is neither asked for nor created again.
		p.held, p.ended, p.finished = api, true, true
	})
	return nil
}

// lose fails a pod that has run and that the provider no longer has.
func (k *kubelet) lose(p *pod, api *v1.Pod) error {
	p.reporting.Lock()
	failed, repairs := lost(api, k.status(api), time.Now())
	_, err := k.manager.SetPodStatus(api, failed)
	p.reporting.Unlock()
	for _, r := range repairs {
		k.set(func() { k.repaired(p, api, r) })
	}
	if err != nil && !status.IsWarning(err) && !errors.Is(err, status.ErrUnknownPod) {
		return err
	}
	return k.end(p, api)
}

// create hands a pod to the provider.
func (k *kubelet) create(ctx context.Context, p *pod, api *v1.Pod) error {
	resolved, err := k.resolve(ctx, api)
	if err != nil {
		k.waits(p, api, runtime.WaitingConfigError, err)
		return err
	}
	k.mu.Lock()
	attempts := p.attempts
	k.mu.Unlock()
	if attempts > 0 { // the call that failed may have done it
		if found, err := k.get(ctx, api); err == nil && found != nil && (found.UID == api.UID || found.UID == "") {
			k.set(func() {
				p.held, p.given, p.ended, p.finished, p.deleted, p.adopted = api, api, false, false, false, true
			})
			return nil
		}
	}
	k.set(func() { // reports may come before the call returns
		p.held, p.given, p.ended, p.finished, p.deleted, p.missing, p.asked = api, api, false, false, false, time.Time{}, time.Now()
	})
	if err := k.calls.do(ctx, "CreatePod", func(ctx context.Context) error { return k.options.Provider.CreatePod(ctx, resolved) }); err != nil {
		k.waits(p, api, "ProviderFailed", err)
		k.set(func() {
			if current := k.status(api); p.held == api && !p.ended && !ran(&current) {
				p.held = nil
			}
		})
		return err
	}
	k.set(func() { p.adopted = true }) // its first status
	return nil
}

// resolve returns a copy of a pod for the provider, with the environments of its containers.
func (k *kubelet) resolve(ctx context.Context, api *v1.Pod) (*v1.Pod, error) {
	pod := api.DeepCopy()
	resolver := runtime.Environment{Objects: k.objects, HostIPs: k.hostIPs()}
	resolver.Skipped = func(kind, name string, keys []string) {
		k.event(api, "", v1.EventTypeWarning, runtime.EventInvalidVariables, fmt.Sprintf("Keys %v from %s %s were skipped: they cannot be names of variables", keys, kind, name))
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			env, err := resolver.Resolve(ctx, api, &list[i])
			if err != nil {
				return nil, fmt.Errorf("container %s: %w", list[i].Name, err)
			}
			list[i].Env, list[i].EnvFrom = env, nil
		}
	}
	return pod, nil
}

// waits reports why a pod that was never started does not start.
func (k *kubelet) waits(p *pod, api *v1.Pod, reason string, why error) {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	before := k.status(api)
	if ran(&before) {
		return
	}
	message := firstLine(why.Error())
	k.event(api, "", v1.EventTypeWarning, reason, message)
	facts := podstatus.Facts{Waiting: map[string]v1.ContainerStateWaiting{}}
	for _, list := range [][]v1.Container{api.Spec.InitContainers, api.Spec.Containers} {
		for i := range list {
			facts.Waiting[list[i].Name] = v1.ContainerStateWaiting{Reason: reason, Message: message}
		}
	}
	k.report(api, podstatus.Generate(api, facts, before, time.Now()))
}

func firstLine(text string) string {
	for i, c := range text {
		if c == '\n' || i > 1000 {
			return text[:i]
		}
	}
	return text
}

// report stores a status. The manager logs what it refuses.
func (k *kubelet) report(api *v1.Pod, s v1.PodStatus) {
	if _, err := k.manager.SetPodStatus(api, s); err != nil && !status.IsWarning(err) && !errors.Is(err, status.ErrUnknownPod) {
		k.log.Error("status not stored", "pod", api.Namespace+"/"+api.Name, "uid", api.UID, "err", err)
	}
}

// update tells the provider of a change. A pod goes on as it is while that fails.
func (k *kubelet) update(ctx context.Context, p *pod, api *v1.Pod) error {
	resolved, err := k.resolve(ctx, api)
	if err == nil {
		err = k.calls.do(ctx, "UpdatePod", func(ctx context.Context) error { return k.options.Provider.UpdatePod(ctx, resolved) })
	}
	if err != nil {
		k.event(api, "", v1.EventTypeWarning, "ProviderUpdateFailed", firstLine(err.Error()))
		return err
	}
	k.set(func() { p.given = api })
	return nil
}

// get asks the provider for a pod; nil: it has none.
func (k *kubelet) get(ctx context.Context, api *v1.Pod) (found *v1.Pod, err error) {
	err = k.calls.do(ctx, "GetPod", func(ctx context.Context) error {
		answer, err := k.options.Provider.GetPod(ctx, api.Namespace, api.Name)
		found = answer.DeepCopy()
		return err
	})
	if isNotFound(err) {
		return nil, nil
	}
	return found, err
}

// statusOf asks the provider for the status of a pod; nil: it has none.
func (k *kubelet) statusOf(ctx context.Context, pod *v1.Pod) (found *v1.PodStatus, err error) {
	err = k.calls.do(ctx, "GetPodStatus", func(ctx context.Context) error {
		answer, err := k.options.Provider.GetPodStatus(ctx, pod.Namespace, pod.Name)
		found = answer.DeepCopy()
		return err
	})
	if isNotFound(err) {
		return nil, nil
	}
	return found, err
}

// ask asks for the status of a pod, unless the provider notifies of a newer one meanwhile.
func (k *kubelet) ask(ctx context.Context, p *pod, api *v1.Pod) error {
	k.mu.Lock()
	notified := p.notified
	k.mu.Unlock()
	found, err := k.statusOf(ctx, api)
	if err != nil {
		return err
	}
	now := time.Now()
	gone := false
	k.set(func() {
		p.asked, p.adopted = now, false
		switch {
		case found != nil:
			p.missing = time.Time{}
		case p.missing.IsZero():
			p.missing = now
		case now.Sub(p.missing) >= missingPatience*k.options.PollInterval:
			gone, p.missing = true, time.Time{}
			p.held = nil // it is lost, or it is created again if nothing of it has run
		}
		if p.notified != notified {
			found = nil
		}
	})
	if found != nil {
		k.believe(p, api, *found)
	}
	if gone {
		k.log.Warn("the provider does not have the pod any more", "pod", p.name.String(), "uid", api.UID)
	}
	return nil
}

// believe repairs a report about a pod and stores it.
func (k *kubelet) believe(p *pod, api *v1.Pod, reported v1.PodStatus) {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	repaired, repairs := Repair(api, reported, k.status(api), time.Now())
	if repaired.HostIP == "" && len(repaired.HostIPs) == 0 {
		for _, ip := range k.hostIPs() {
			repaired.HostIPs = append(repaired.HostIPs, v1.HostIP{IP: ip})
		}
		if len(repaired.HostIPs) > 0 {
			repaired.HostIP = repaired.HostIPs[0].IP
		}
	}
	k.report(api, repaired)
	ended := podstatus.IsTerminal(repaired.Phase)
	if ended {
		// The provider's word on the end is final: nothing of the pod runs.
		if err := k.manager.TerminatePod(api); err != nil && !status.IsWarning(err) && !errors.Is(err, status.ErrUnknownPod) {
			k.log.Error("end not stored", "pod", p.name.String(), "uid", api.UID, "err", err)
			ended = false
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range repairs {
		k.repaired(p, api, r)
	}
	if ended && p.held != nil && p.held.UID == api.UID {
		p.ended, p.finished = true, true
	}
}

// repaired counts and explains a repair. It needs mu.
func (k *kubelet) repaired(p *pod, api *v1.Pod, r Repaired) {
	k.repairs.WithLabelValues(string(r.Kind)).Inc()
	level := slog.LevelDebug
	if !p.noted[r.Kind] { // once for each pod and kind
		p.noted[r.Kind] = true
		level = slog.LevelWarn
		k.event(api, r.Container, v1.EventTypeNormal, "ProviderStatusRepaired", r.Text)
	}
	k.log.Log(context.Background(), level, "report of the provider repaired", "pod", p.name.String(), "uid", api.UID, "kind", r.Kind, "container", r.Container, "repair", r.Text)
	if k.options.OnRepair != nil {
		k.options.OnRepair(api, r)
	}
}

// notify is the callback of providers that notify.
func (k *kubelet) notify(reported *v1.Pod) {
	if reported == nil {
		return
	}
	reported = reported.DeepCopy()
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[types.NamespacedName{Namespace: reported.Namespace, Name: reported.Name}]
	if p == nil || k.running == nil {
		return // unknown, or before the start: its status is asked for then
	}
	p.notified++
	busy := p.newest != nil
	if p.newest = reported; busy {
		return
	}
	k.turning.Go(func() { k.look(p) })
}

// look takes the notifications of a pod.
func (k *kubelet) look(p *pod) {
	k.mu.Lock()
	for p.newest != nil && k.running != nil {
		reported, api := p.newest, p.api
		switch {
		case p.held == nil || api == nil || p.held.UID != api.UID, reported.UID != "" && reported.UID != api.UID:
			if api != nil && reported.UID != "" && reported.UID != api.UID {
				k.repaired(p, api, Repaired{Kind: OtherUID, Text: fmt.Sprintf("a report was about the pod of UID %s and was dropped", reported.UID)})
			}
		default:
			if reported.UID == "" {
				k.repaired(p, api, Repaired{Kind: NoUID, Text: "the report had no UID and was taken for the pod of its name"})
			}
			p.missing = time.Time{}
			k.mu.Unlock()
			k.believe(p, api, reported.Status)
			k.mu.Lock()
		}
		if p.newest == reported {
			p.newest = nil
		}
		k.wake(p)
	}
	p.newest = nil
	k.mu.Unlock()
}

// delete ends a pod that the API wants gone.
func (k *kubelet) delete(ctx context.Context, p *pod, api *v1.Pod) error {
	k.mu.Lock()
	wait := p.deleted && time.Since(p.deletedAt) < grace(api) // it has time to end
	k.mu.Unlock()
	if !wait {
		if err := k.askToDelete(ctx, api); err != nil {
			k.event(api, "", v1.EventTypeWarning, "ProviderDeleteFailed", firstLine(err.Error()))
			return err
		}
		k.set(func() { p.deleted, p.deletedAt = true, time.Now() })
	}
	k.mu.Lock()
	notified := p.notified
	k.mu.Unlock()
	found, err := k.statusOf(ctx, api)
	if err != nil {
		return err
	}
	k.mu.Lock()
	ended, newer := p.ended, p.notified != notified
	k.mu.Unlock()
	switch {
	case ended:
		return nil
	case found == nil:
		return k.end(p, api)
	case !newer:
		k.believe(p, api, *found)
	}
	if current := k.status(api); podstatus.IsTerminal(current.Phase) || allEnded(&current) {
		return k.end(p, api)
	}
	return errStillThere
}

// grace is how long a pod may take to end.
func grace(pod *v1.Pod) time.Duration {
	seconds := int64(v1.DefaultTerminationGracePeriodSeconds)
	if pod.DeletionGracePeriodSeconds != nil {
		seconds = *pod.DeletionGracePeriodSeconds
	}
	return max(time.Duration(seconds)*time.Second, time.Second)
}

var errStillThere = errors.New("the provider was asked to delete the pod, and still reports it running")

func (k *kubelet) askToDelete(ctx context.Context, pod *v1.Pod) error {
	err := k.calls.do(ctx, "DeletePod", func(ctx context.Context) error { return k.options.Provider.DeletePod(ctx, pod.DeepCopy()) })
	if isNotFound(err) {
		return nil
	}
	return err
}

// removeFormer removes a pod that the API does not have, or no longer under this UID.
func (k *kubelet) removeFormer(ctx context.Context, p *pod, held *v1.Pod) error {
	wanted, err := k.stored(ctx, held)
	if err != nil {
		return err
	}
	if wanted {
		return errors.New("the API has the pod, and its watch has not shown it yet")
	}
	if err := k.askToDelete(ctx, held); err != nil {
		return err
	}
	found, err := k.statusOf(ctx, held)
	if err != nil {
		return err
	}
	if found != nil && !podstatus.IsTerminal(found.Phase) && !allEnded(found) {
		return errStillThere
	}
	k.log.Info("pod removed from the provider: the API does not have it", "pod", p.name.String(), "uid", held.UID)
	k.set(func() {
		p.held, p.given, p.ended, p.finished, p.deleted, p.adopted, p.newest = nil, nil, false, false, false, false, nil
		p.missing, p.noted = time.Time{}, map[Kind]bool{}
	})
	return nil
}

// stored reports whether the API server has stored the pod: a watch may be behind, and a pod that is deleted here is lost.
func (k *kubelet) stored(ctx context.Context, pod *v1.Pod) (bool, error) {
	finder, ok := k.client.(status.Finder)
	if !ok {
		list, err := k.client.List(ctx)
		return slices.ContainsFunc(list, func(p v1.Pod) bool { return p.UID == pod.UID && p.UID != "" }), err
	}
	found, err := finder.FindPod(ctx, pod.Namespace, pod.Name)
	if err != nil || found == nil {
		return false, err
	}
	if pod.UID != "" {
		return found.UID == pod.UID, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	return p == nil || p.api == nil, nil // a pod without a UID is replaced only by one that the watch has shown
}
