package worker_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

// slowImage is a runtime that pulls the image of one container until it has it.
type slowImage struct {
	*runtimefake.Runtime
	container string
	present   atomic.Bool
	asked     atomic.Int32
}

func (s *slowImage) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container, attempt int) (string, error) {
	if c.Name == s.container && !s.present.Load() {
		s.asked.Add(1)
		return "", runtime.ErrPulling
	}
	return s.Runtime.StartContainer(ctx, pod, c, attempt)
}

// While the image of a container is pulled, earlier containers are reported and restarted, and later ones wait for their turn.
func TestPulling_PodsOtherContainersAreLookedAfter(t *testing.T) {
	rt := &slowImage{container: "large"}
	story(t, func(n *node) {
		pod := newPod("web", v1.Container{Name: "first"}, v1.Container{Name: "large"}, v1.Container{Name: "last"})
		n.update(pod)
		pulled := time.Now()
		n.wantState(pod, "first", "while the second image is pulled", "Running")
		n.wantState(pod, "large", "while its image is pulled", "Waiting ContainerCreating")
		n.wantStarts("in order", "first/0")
		n.sleep(time.Minute)
		if asked := rt.asked.Load(); asked > 4 {
			t.Errorf("got %d starts within a minute of a pull, want a few", asked)
		}
		if facts, _ := n.workers.Facts(pod.UID); !facts.Pulling["large"].Equal(pulled) {
			t.Errorf("got pulls %v, want that of large since %v", facts.Pulling, pulled)
		}
		n.rt.Exit(n.newest(pod, "first").ID, runtimefake.Exit{Code: 1})
		synctest.Wait()
		n.wantStarts("restarted during the pull", "first/0", "first/1")
		rt.present.Store(true)
		n.workers.Sync(pod.UID)
		synctest.Wait()
		n.wantStarts("after the pull", "first/0", "first/1", "large/0", "last/0")
		if facts, _ := n.workers.Facts(pod.UID); len(facts.Pulling) > 0 {
			t.Errorf("got pulls %v after the last one", facts.Pulling)
		}
		if slices.ContainsFunc(n.events.all, func(e string) bool { return strings.Contains(e, "Failed:") }) {
			t.Errorf("got events %q, want no failure", n.events.all)
		}
	}, func(o *worker.Options) { rt.Runtime, o.Runtime = o.Runtime.(*runtimefake.Runtime), rt })
}

// A pod that must end while an image is pulled ends at once.
func TestPulling_DeletedPodEnds(t *testing.T) {
	rt := &slowImage{container: "main"}
	story(t, func(n *node) {
		pod := newPod("web", v1.Container{Name: "main"})
		n.update(pod)
		n.delete(pod, 30)
		synctest.Wait()
		select {
		case <-n.workers.Stopped(pod.UID):
		default:
			t.Errorf("the pod has not ended; calls: %q", n.rt.Calls())
		}
		if !slices.ContainsFunc(n.rt.Calls(), func(call string) bool { return strings.HasPrefix(call, "RemoveVolumes") }) {
			t.Errorf("calls %q, want RemoveVolumes, which ends the pull", n.rt.Calls())
		}
	}, func(o *worker.Options) { rt.Runtime, o.Runtime = o.Runtime.(*runtimefake.Runtime), rt })
}
