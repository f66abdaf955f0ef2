package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// missingPatience is the number of polls in which a provider may not find a created pod: some clouds list a pod only
// some time after its creation.
const missingPatience = 3

// report stores a status. The manager logs what it refuses.
func (k *kubelet) report(api *v1.Pod, s v1.PodStatus) {
	if _, err := k.manager.SetPodStatus(api, s); err != nil && !status.IsWarning(err) && !errors.Is(err, status.ErrUnknownPod) {
		k.log.Error("status not stored", "pod", api.Namespace+"/"+api.Name, "uid", api.UID, "err", err)
	}
}

// get returns the provider's pod, or nil if it does not exist.
func (k *kubelet) get(ctx context.Context, api *v1.Pod) (found *v1.Pod, err error) {
	err = k.calls.do(ctx, "GetPod", api.Namespace+"/"+api.Name, func(ctx context.Context) error {
		answer, err := k.options.Provider.GetPod(ctx, api.Namespace, api.Name)
		found = answer.DeepCopy()
		return err
	})
	if isNotFound(err) {
		return nil, nil
	}
	return found, err
}

// statusOf returns the provider's status of a pod, or nil if the pod does not exist.
func (k *kubelet) statusOf(ctx context.Context, pod *v1.Pod) (found *v1.PodStatus, err error) {
	err = k.calls.do(ctx, "GetPodStatus", pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
		answer, err := k.options.Provider.GetPodStatus(ctx, pod.Namespace, pod.Name)
		found = answer.DeepCopy()
		return err
	})
	if isNotFound(err) {
		return nil, nil
	}
	return found, err
}

// ask reads the status of a pod, which is dropped if the provider notifies of a newer status
// meanwhile.
func (k *kubelet) ask(ctx context.Context, p *pod, api *v1.Pod) error {
	k.mu.Lock()
	notified, hinted := p.notified, p.hinted
	p.hinted = false
	k.mu.Unlock()
	found, err := k.statusOf(ctx, api)
	if err != nil {
		k.set(func() { p.hinted = p.hinted || hinted })
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

// repaired counts and explains a repair. repaired needs mu.
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
				k.repaired(p, api, Repaired{Kind: OtherUID, Text: fmt.Sprintf("a report was about the pod of UID %s and was dropped; the status is read", reported.UID)})
				p.hinted = true
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
