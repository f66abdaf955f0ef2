package cri

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/runtime"
)

// ended returns a pod without running containers. The pod is nil, without an error, if the UID is
// unknown.
func (r *Runtime) ended(uid types.UID, what string) (*pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.pods[uid]
	if !known {
		return nil, nil
	}
	for _, c := range p.containers {
		if c.view.State != runtime.Exited {
			return nil, fmt.Errorf("cri: %s pod %s: container %s: %w", what, uid, c.view.Name, runtime.ErrContainerRunning)
		}
	}
	return p, nil
}

// RemovePod implements [runtime.Runtime]. The caller retries failed removals; the record is removed last.
func (r *Runtime) RemovePod(ctx context.Context, uid types.UID) error {
	p, err := r.ended(uid, "remove")
	if p == nil {
		return err
	}
	if err := r.remove(ctx, p); err != nil {
		return fmt.Errorf("cri: remove pod %s: %w", uid, err)
	}
	r.mu.Lock()
	delete(r.pods, uid)
	if p.unheard {
		r.late[uid] = lateRemoval{p.manifest, time.Now().Add(sandboxTime)}
	}
	r.mu.Unlock()
	r.groups.weighBurstable(r.active)
	r.Notify(uid)
	return nil
}

func (r *Runtime) remove(ctx context.Context, p *pod) error {
	r.keeper.Remove(p.manifest.UID)
	r.endPulls(p)
	if err := r.removeSandboxes(ctx, p.manifest.UID); err != nil {
		return err
	}
	if err := r.groups.removePod(p.manifest); err != nil {
		return err
	}
	defer r.sweepLinks() // also those of containers that the container runtime has lost
	return errors.Join(os.RemoveAll(r.logDir(p.manifest)), p.removeVolumes(), removeTree(string(p.dir)))
}

// lateRemoval is a pod that was removed while the container runtime may have been making its sandbox: a start that is canceled goes on for a moment, and
// makes the sandbox or its control group again.
type lateRemoval struct {
	manifest *v1.Pod
	until    time.Time
}

// lateEvery is how often what was made too late is looked for.
const lateEvery = 10 * time.Second

// isUnheard reports whether the container runtime may have done, or may still do, what a request has asked for.
func isUnheard(err error) bool {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return true
	}
	return false
}

// removeLate removes what was made of pods after they were removed.
func (r *Runtime) removeLate(ctx context.Context) {
	r.mu.Lock()
	late := maps.Clone(r.late)
	r.mu.Unlock()
	for uid, pod := range late {
		_, err := r.place(uid)
		known := err == nil // again
		if !known {
			err = r.removeSandboxes(ctx, uid)
			if err == nil {
				err = r.groups.removePod(pod.manifest)
			}
			if err != nil && ctx.Err() == nil {
				r.options.Logger.Warn("removing what was made of a pod after its removal failed, will retry", "uid", uid, "err", err)
			}
		}
		if known || err == nil && time.Now().After(pod.until) {
			r.mu.Lock()
			delete(r.late, uid)
			r.mu.Unlock()
		}
	}
}

// removeSandboxes removes the sandboxes of a pod, all that there are, with their containers and networks.
func (r *Runtime) removeSandboxes(ctx context.Context, uid types.UID) error {
	bounded, cancel := r.ask(ctx)
	defer cancel()
	listed, err := r.cri.ListPodSandbox(bounded, &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{labelPodUID: string(uid)}},
	})
	if err != nil {
		return err
	}
	for _, s := range listed.Items {
		if s.Labels[labelPodUID] != string(uid) {
			continue
		}
		if err := r.stopSandbox(ctx, s.Id); err != nil {
			return err
		}
		if _, err := r.cri.RemovePodSandbox(bounded, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id}); err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}

// RemoveVolumes implements [runtime.VolumeRemover]. The pod has ended: its network goes too, so that its address can be used again.
func (r *Runtime) RemoveVolumes(ctx context.Context, uid types.UID) error {
	p, err := r.ended(uid, "remove volumes of")
	if p == nil {
		return err
	}
	r.endPulls(p)
	r.mu.Lock()
	id, done := p.sandbox.id, p.released
	r.mu.Unlock()
	if done {
		return nil
	}
	r.keeper.Remove(uid) // it would write them again
	if id != "" {
		if err := r.stopSandbox(ctx, id); err != nil {
			return fmt.Errorf("cri: remove the network of pod %s: %w", uid, err)
		}
	}
	if err := r.groups.removePod(p.manifest); err != nil { // what still runs there could use the volumes
		return fmt.Errorf("cri: end what is left of pod %s: %w", uid, err)
	}
	if err := p.removeVolumes(); err != nil {
		return fmt.Errorf("cri: remove volumes of pod %s: %w", uid, err)
	}
	r.mu.Lock()
	p.released, p.sandbox.ready = true, false
	r.mu.Unlock()
	r.groups.weighBurstable(r.active)
	return r.save(p)
}

// RemoveLogs implements [runtime.LogRemover].
func (r *Runtime) RemoveLogs(_ context.Context, uid types.UID) error {
	r.mu.Lock()
	var logs, links []string
	if p, known := r.pods[uid]; known {
		for _, c := range p.containers {
			if c.view.State == runtime.Exited {
				logs, links = append(logs, c.log), append(links, c.link)
			}
		}
	}
	r.mu.Unlock()
	errs := []error{unlink(links...)}
	for _, log := range logs {
		errs = append(errs, removeLog(log))
	}
	return errors.Join(errs...)
}
