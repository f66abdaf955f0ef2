package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/status"
)

// end records that nothing of a pod runs and that it may be deleted from the API.
func (k *kubelet) end(p *pod, api *v1.Pod) error {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	if err := k.manager.TerminatePod(api); err != nil && !status.IsWarning(err) && !errors.Is(err, status.ErrUnknownPod) {
		return err
	}
	k.set(func() {
		// A pod that has ended is neither read from the provider nor created again.
		p.held, p.ended, p.finished = api, true, true
	})
	return nil
}

// listTrust is after how many failed reads of a status the provider's list of pods decides alone.
const listTrust = 3

// lose fails a pod that has run and that the provider no longer has. A list may lack a pod, or have it as a pod of another node, as a
// cluster that runs the pods has, so the provider is asked for the status too.
func (k *kubelet) lose(ctx context.Context, p *pod, api *v1.Pod) error {
	found, err := k.statusOf(ctx, api)
	k.mu.Lock()
	attempts := p.attempts
	k.mu.Unlock()
	switch {
	case err != nil && attempts < listTrust:
		return err
	case found != nil:
		k.set(func() { p.held, p.given, p.adopted, p.missing = api, api, true, time.Time{} })
		return nil
	}
	p.reporting.Lock()
	failed, repairs := lost(api, k.status(api), time.Now())
	_, err = k.manager.SetPodStatus(api, failed)
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
		k.waitsWithEvent(p, api, runtime.WaitingConfigError, err)
		return err
	}
	k.mu.Lock()
	attempts := p.attempts
	k.mu.Unlock()
	if attempts > 0 { // the call that failed may have done it
		status := k.status(api)
		if found, err := k.get(ctx, api); err == nil && found != nil && (found.UID == "" || isSame(found, api, &status)) {
			k.set(func() {
				p.held, p.given, p.ended, p.finished, p.deleted, p.adopted = api, api, false, false, false, true
			})
			return nil
		}
	}
	k.set(func() { // reports may come before the call returns
		p.held, p.given, p.ended, p.finished, p.deleted, p.missing, p.asked = api, api, false, false, false, time.Time{}, time.Now()
	})
	late := time.AfterFunc(slowCall, func() {
		k.waits(p, api, podstatus.ReasonContainerCreating, "CreatePod of the provider has not returned yet")
	})
	err = k.calls.do(ctx, "CreatePod", p.name.String(), func(ctx context.Context) error { return k.options.Provider.CreatePod(ctx, resolved) })
	late.Stop()
	if err != nil {
		k.waitsWithEvent(p, api, "ProviderFailed", err)
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
	select {
	case k.resolves <- struct{}{}:
		defer func() { <-k.resolves }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// waitsWithEvent is waits for an error.
func (k *kubelet) waitsWithEvent(p *pod, api *v1.Pod, reason string, why error) {
	message := firstLine(why.Error())
	if k.waits(p, api, reason, message) {
		k.event(api, "", v1.EventTypeWarning, reason, message)
	}
}

// waits reports why a pod that was never started does not start. waits returns false for a pod that was started.
func (k *kubelet) waits(p *pod, api *v1.Pod, reason, message string) bool {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	before := k.status(api)
	if ran(&before) {
		return false
	}
	facts := podstatus.Facts{Waiting: map[string]v1.ContainerStateWaiting{}}
	for _, list := range [][]v1.Container{api.Spec.InitContainers, api.Spec.Containers} {
		for i := range list {
			facts.Waiting[list[i].Name] = v1.ContainerStateWaiting{Reason: reason, Message: message}
		}
	}
	k.report(api, podstatus.Generate(api, facts, before, time.Now()))
	return true
}

func firstLine(text string) string {
	for i, c := range text {
		if c == '\n' || i > 1000 {
			return text[:i]
		}
	}
	return text
}

// update tells the provider of a change. A pod goes on as it is while that fails.
func (k *kubelet) update(ctx context.Context, p *pod, api *v1.Pod) error {
	resolved, err := k.resolve(ctx, api)
	if err == nil {
		err = k.calls.do(ctx, "UpdatePod", p.name.String(), func(ctx context.Context) error { return k.options.Provider.UpdatePod(ctx, resolved) })
	}
	if err != nil {
		k.event(api, "", v1.EventTypeWarning, "ProviderUpdateFailed", firstLine(err.Error()))
		return err
	}
	k.set(func() { p.given = api })
	return nil
}
