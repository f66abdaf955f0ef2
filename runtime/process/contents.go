package process

import (
	"context"
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
)

// newKept is a pod whose volumes were not written yet.
func (r *Runtime) newKept(p *pod) *podvolume.Contents {
	return podvolume.NewContents(p.manifest, volume.Options{
		Objects: r.options.Objects, Dir: p.dir.volume, Root: r.root, Group: p.group,
		Fields: func(pod *v1.Pod) volume.Fields { return r.fields(pod, nil) },
	})
}

// fill writes the contents of a new pod's volumes, or says which of them it cannot.
func (r *Runtime) fill(ctx context.Context, p *pod) (*podvolume.Contents, error) {
	if !podvolume.HasContents(p.manifest) {
		return nil, nil
	}
	k := r.newKept(p)
	return k, k.Fill(ctx)
}

// UpdatePod implements [runtime.PodUpdater].
func (r *Runtime) UpdatePod(pod *v1.Pod) { r.keeper.Update(pod) }

// keepAdopted takes up the pods that an earlier process has started. Their volumes are
// looked at once: objects may have changed meanwhile, and the tokens are of unknown age. A
// pod that has ended may have no volumes any more.
func (r *Runtime) keepAdopted() {
	if r.options.Objects == nil {
		return // what needs none of them was complete from the start
	}
	r.mu.Lock()
	var adopted []*pod
	for _, p := range r.pods {
		if !podvolume.HasContents(p.manifest) || !p.couldRun() {
			continue
		}
		if _, err := os.Stat(p.dir.volumes()); err == nil {
			adopted = append(adopted, p)
		}
	}
	r.mu.Unlock()
	for _, p := range adopted {
		k := r.newKept(p)
		k.Poke()
		r.keeper.Add(p.manifest.UID, k)
		if !r.isListed(p) { // removed meanwhile; a removal from now on finds it with the keeper
			r.keeper.Remove(p.manifest.UID)
		}
	}
}

func (r *Runtime) isListed(p *pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[p.manifest.UID] == p
}

// couldRun needs Runtime.mu. couldRun reports whether a container of the pod runs or may be
// started again; a pod without any has just been made.
func (p *pod) couldRun() bool {
	if len(p.containers) == 0 || p.manifest.Spec.RestartPolicy != v1.RestartPolicyNever {
		return true
	}
	for _, c := range p.containers {
		if c.view.State != runtime.Exited {
			return true
		}
	}
	return false
}

// refill brings the volumes of a pod up to date again after a restart of the machine.
func (r *Runtime) refill(ctx context.Context, p *pod) error {
	k, err := r.fill(ctx, p)
	if err == nil {
		r.keeper.Add(p.manifest.UID, k)
	}
	return err
}
