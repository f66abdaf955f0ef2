package worker_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/runtime"
)

// pulling is a runtime whose starts last until they are given up, as the pull of a large image does.
type pulling struct {
	runtime.Runtime
	begun int
}

func (p *pulling) StartContainer(ctx context.Context, _ *v1.Pod, _ *v1.Container, _ int) (string, error) {
	p.begun++
	<-ctx.Done()
	return "", &runtime.StartError{Reason: runtime.WaitingImagePull, Err: ctx.Err()}
}

// A pod that must end while an image is pulled ends at once, and its other containers are not started.
func TestStart_PodMustEnd_IsAbandoned(t *testing.T) {
	for name, end := range map[string]func(n *node, pod *v1.Pod){
		"deleted": func(n *node, pod *v1.Pod) { n.delete(pod, 30) },
		"removed": func(n *node, pod *v1.Pod) { n.remove(pod) },
		"evicted": func(n *node, pod *v1.Pod) {
			n.workers.Evict(pod.UID, worker.Eviction{Reason: "Evicted", Grace: time.Minute})
		},
		"ended by a user": func(n *node, pod *v1.Pod) {
			failed := pod.DeepCopy()
			failed.Status.Phase = v1.PodFailed
			n.update(failed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := &pulling{}
			story(t, func(n *node) {
				pod := newPod("web", v1.Container{Name: "main"}, v1.Container{Name: "beside"})
				n.update(pod)
				n.sleep(time.Hour)
				end(n, pod)
				synctest.Wait()
				select {
				case <-n.workers.Stopped(pod.UID):
				default:
					t.Errorf("the pod has not ended; calls: %q", n.rt.Calls())
				}
				if rt.begun != 1 {
					t.Errorf("got %d starts, want that of the first container", rt.begun)
				}
				if slices.ContainsFunc(n.events.all, func(e string) bool { return strings.Contains(e, "Failed:") }) {
					t.Errorf("got events %q, want no failure of a start that was given up", n.events.all)
				}
			}, func(o *worker.Options) { rt.Runtime, o.Runtime = o.Runtime, rt })
		})
	}
}
