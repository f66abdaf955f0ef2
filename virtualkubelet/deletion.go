package virtualkubelet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// delete ends a pod that is being deleted in the API.
func (k *kubelet) delete(ctx context.Context, p *pod, api *v1.Pod) error {
	k.mu.Lock()
	wait := p.deleted && time.Since(p.deletedAt) < grace(api) // it has time to end
	k.mu.Unlock()
	var refused error
	if !wait {
		if refused = k.askToDelete(ctx, api); refused != nil {
			k.event(api, "", v1.EventTypeWarning, "ProviderDeleteFailed", firstLine(refused.Error()))
		} else {
			k.set(func() { p.deleted, p.deletedAt = true, time.Now() })
		}
	}
	k.mu.Lock()
	notified := p.notified
	k.mu.Unlock()
	found, err := k.statusOf(ctx, api)
	if err != nil {
		return cmp.Or(refused, err)
	}
	k.mu.Lock()
	ended, newer := p.ended, p.notified != notified
	k.mu.Unlock()
	switch {
	case ended:
		return nil
	case found == nil && refused == nil:
		return k.end(p, api)
	case found != nil && !newer:
		k.believe(p, api, *found)
	}
	if current := k.status(api); podstatus.IsTerminal(current.Phase) || allEnded(&current) {
		return k.end(p, api)
	}
	return cmp.Or(refused, errStillThere)
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
	err := k.calls.do(ctx, "DeletePod", pod.Namespace+"/"+pod.Name, func(ctx context.Context) error { return k.options.Provider.DeletePod(ctx, pod.DeepCopy()) })
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
		p.missing, p.noted, p.updates, p.updateAfter, p.hinted = time.Time{}, map[Kind]bool{}, 0, time.Time{}, false
	})
	return nil
}

// stored reports whether the API server has the pod in storage: a watch may be behind, and a pod deleted at the provider
// by mistake is lost.
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
