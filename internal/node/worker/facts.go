package worker

import (
	"context"
	"errors"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/podstatus"
)

// Lifecycle hooks, as specs name them.
const (
	PostStart = "postStart"
	PreStop   = "preStop"
)

// Facts are a worker's facts of a pod beyond its status, as of its last turn.
type Facts struct {
	// Containers has the containers with known facts, by name.
	Containers map[string]podstatus.ContainerFacts
	// Pulling has, by name, since when the images of containers are pulled.
	Pulling map[string]time.Time
	// WaitsFor is the static pod of the same name whose end the pod waits for.
	WaitsFor types.UID
	// WantsRoom: it waits for the pods that leave for it.
	WantsRoom bool
}

// Facts returns the facts of a pod beyond its status, false if the pod has no worker. The returned
// facts are never changed.
func (w *Workers) Facts(uid types.UID) (Facts, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, known := w.pods[uid]
	if !known {
		return Facts{}, false
	}
	return Facts{Containers: p.inbox.facts, Pulling: p.inbox.pulling, WaitsFor: w.blocked(p), WantsRoom: p.inbox.wantsRoom}, true
}

// Observer receives the steps of pods that their statuses do not show. It must not block, and must
// not call the Workers.
type Observer interface {
	// Admitted is called when it was decided whether a pod may run; the rejection is nil if it may.
	Admitted(pod *v1.Pod, r *fit.Rejection, at time.Time)
	// HookStep is called when a lifecycle hook begins and when it has ended.
	HookStep(HookStep)
	// Ending is called when the node begins to end a pod: until when is its grace.
	Ending(pod *v1.Pod, reason, message string, at time.Time)
}

// HookStep is the beginning or the end of a lifecycle hook.
type HookStep struct {
	Pod       *v1.Pod
	Container string
	Hook      string // PostStart or PreStop
	// Ended: else it has begun. Err is why it has not done its work.
	Ended     bool
	Err       error
	Began, At time.Time
}

// Why a pod ends, as Observer.Ending has it.
const (
	EndingDeleted  = "Deleted"  // it is being deleted from the API
	EndingRemoved  = "Removed"  // its source does not have it any more
	EndingFinished = "Finished" // it has succeeded or failed
)

// begunHook is a hook that runs.
type begunHook struct {
	container string
	since     time.Time
	canceled  error // why, if the worker has canceled it
}

func (k hookKey) name() string {
	if k.post {
		return PostStart
	}
	return PreStop
}

// publish shows others what the worker knows after a turn.
func (p *worker) publish() {
	facts, pulling := p.knowledge(), maps.Clone(p.pulling)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.inbox.facts, p.inbox.pulling = facts, pulling
}

// knowledge is what the worker knows of its containers, nil if that is nothing, as of most pods.
func (p *worker) knowledge() map[string]podstatus.ContainerFacts {
	if len(p.dues)+len(p.begun)+len(p.stops) == 0 {
		return nil
	}
	all := make(map[string]podstatus.ContainerFacts)
	for name, due := range p.dues {
		all[name] = podstatus.ContainerFacts{NextStart: due}
	}
	for key, hook := range p.begun {
		f := all[hook.container]
		f.Hook, f.HookSince = key.name(), hook.since
		all[hook.container] = f
	}
	for _, stop := range p.stops {
		f := all[stop.name]
		if f.KillAt = stop.asked; f.KillAt.IsZero() {
			f.KillAt = stop.by
		}
		all[stop.name] = f
	}
	return all
}

// hookBegins notes that a hook runs.
func (p *worker) hookBegins(pod *v1.Pod, key hookKey, container string) {
	now := time.Now()
	p.begun[key] = begunHook{container: container, since: now}
	p.w.opts.Observer.HookStep(HookStep{Pod: pod, Container: container, Hook: key.name(), Began: now, At: now})
}

// Why hooks are canceled.
var (
	errGraceOver      = errors.New("canceled, because the grace period is over")
	errContainerEnded = errors.New("canceled, because the container has ended")
)

// hookCanceled notes why a hook is about to end.
func (p *worker) hookCanceled(key hookKey, why error) {
	if hook, runs := p.begun[key]; runs && hook.canceled == nil {
		hook.canceled = why
		p.begun[key] = hook
	}
}

// hookEnded notes that a hook has ended.
func (p *worker) hookEnded(pod *v1.Pod, hook *hookEnd, now time.Time) {
	begun := p.begun[hook.hookKey]
	delete(p.begun, hook.hookKey)
	err := hook.err
	if errors.Is(err, context.Canceled) && begun.canceled != nil {
		err = begun.canceled
	}
	p.w.opts.Observer.HookStep(HookStep{Pod: pod, Container: hook.container, Hook: hook.name(), Ended: true, Err: err, Began: begun.since, At: now})
}

// beginsToEnd notes why a pod must not run any more.
func (p *worker) beginsToEnd(in *input, now time.Time) {
	reason, message := EndingFinished, ""
	switch {
	case in.evicted != nil:
		reason, message = in.evicted.Reason, in.evicted.Message
	case in.pod.DeletionTimestamp != nil:
		reason, message = EndingDeleted, "grace period "+podGrace(in.pod).String()
	case in.gone:
		reason, message = EndingRemoved, "grace period "+podGrace(in.pod).String()
	}
	p.w.opts.Observer.Ending(in.pod, reason, message, now)
}

type noObserver struct{}

func (noObserver) Admitted(*v1.Pod, *fit.Rejection, time.Time) {}
func (noObserver) HookStep(HookStep)                           {}
func (noObserver) Ending(*v1.Pod, string, string, time.Time)   {}
