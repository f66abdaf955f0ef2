package probe

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// hook calls a function when an event is recorded or a start is told, which is in the
// middle of what a prober does about a result.
type hook struct {
	*fakeStatus
	on func()
}

func (h hook) Event(*v1.Pod, string, string, string, string) { h.on() }

func (h hook) SetContainerStartup(uid types.UID, id string, started bool) error {
	defer h.on()
	return h.fakeStatus.SetContainerStartup(uid, id, started)
}

func TestAResultIsDroppedWhenTheRunEndsInTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(o *Options) { o.Recorder = hook{on: func() { w.exit("web") }} })
		w.answer("web", runtime.LivenessProbe, "failure")
		w.add("web", withHandlers(v1.Container{LivenessProbe: every(1)}))
		w.run("web", "web-1")
		w.wait(0)
		if got, want := w.diary(), []string{"web: probed web-1 liveness: failure"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want the probe and no verdict: %q", got, want)
		}
	})
}

// The run ends while its next probe is due already. Which of the two is seen first is random.
func TestNothingIsProbedAfterTheEndOfItsRun(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var w *world
			w = newWorld(t, func(o *Options) { o.Recorder = hook{on: func() { w.prober.RemovePod("web") }} })
			var probes atomic.Int32
			w.prober.check = func(context.Context, question) answer {
				probes.Add(1)
				time.Sleep(2 * time.Second) // longer than the period
				return failed("not well")
			}
			w.add("web", withHandlers(v1.Container{LivenessProbe: &v1.Probe{PeriodSeconds: 1, FailureThreshold: 3}}))
			w.run("web", "web-1")
			w.wait(time.Minute)
			if got := probes.Load(); got != 1 {
				t.Fatalf("probed %d times, want not again after the end of the run", got)
			}
		})
	}
}

func TestNothingIsProbedOfARunThatEndsWhenItHasJustStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(o *Options) {
			o.Status = hook{o.Status.(*fakeStatus), func() { w.prober.RemovePod("web") }}
		})
		w.add("web", withHandlers(v1.Container{StartupProbe: every(1), ReadinessProbe: every(1)}))
		w.run("web", "web-1")
		w.wait(0)
		if got, want := w.diary(), []string{"web: probed web-1 startup: success", "web: web-1 started=true"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want no readiness probe: %q", got, want)
		}
	})
}

func TestStartedIsToldBeforeReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.add("web", withHandlers(v1.Container{StartupProbe: every(1)}))
		w.run("web", "web-1")
		synctest.Wait()
		var got []string
		for _, n := range w.told { // as it happened: the diary is in order anyway
			got = append(got, n.line)
		}
		if want := []string{"web: probed web-1 startup: success", "web: web-1 started=true", "web: web-1 ready=true"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestSidecarsAreProbed has one, and an ordinary init container, whose probes do not count.
func TestSidecarsAreProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan question, 10)
		w := newWorld(t, nil)
		w.prober.check = func(_ context.Context, q question) answer {
			asked <- q
			return succeeded("")
		}
		probed := withHandlers(v1.Container{Name: "init", ReadinessProbe: every(60)})
		sidecar := *probed.DeepCopy()
		sidecar.Name, sidecar.RestartPolicy = "sidecar", &always
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: v1.PodSpec{InitContainers: []v1.Container{probed, sidecar}}}
		justStarted := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}
		status := v1.PodStatus{PodIP: "192.0.2.7", InitContainerStatuses: []v1.ContainerStatus{
			{Name: "init", ContainerID: "i-1", State: justStarted},
			{Name: "sidecar", ContainerID: "s-1", State: justStarted},
		}}
		w.prober.AddPod(pod)
		w.prober.UpdatePodStatus(pod, &status)
		synctest.Wait()
		close(asked)
		if q := <-asked; q.containerID != "s-1" || q.podIP != "192.0.2.7" {
			t.Errorf("probed container %q at %q, want s-1 at 192.0.2.7", q.containerID, q.podIP)
		}
		if q, more := <-asked; more {
			t.Errorf("probed %q too", q.containerID)
		}
		w.prober.UpdatePodStatus(pod, &status)
		if got := describe(&status.InitContainerStatuses[1]); got != "started=true ready=true" {
			t.Errorf("the sidecar after its probe: got %s, want started=true ready=true", got)
		}
	})
}

// TestAddingAPodAgainChangesNothing has a worker that adds its pod in each of its turns,
// also when the status manager is behind.
func TestAddingAPodAgainChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.add("web", withHandlers(v1.Container{ReadinessProbe: every(5)}))
		w.run("web", "web-1")
		w.wait(time.Second)
		stale := w.statuses["web"]
		w.run("web", "web-2")
		w.wait(time.Second)
		w.diary()
		w.statuses["web"] = stale
		w.prober.AddPod(w.pods["web"].manifest)
		w.wait(5 * time.Second)
		if got, want := w.diary(), []string{"web: probed web-2 readiness: success"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want web-2 to be probed on: %q", got, want)
		}
	})
}

func TestAPodThatIsGoneBeforeRunIsNeverProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.stop()
		running := w.prober
		idle, err := New(running.opts)
		if err != nil {
			t.Fatal(err)
		}
		idle.check, w.prober = running.check, idle
		for _, name := range []string{"gone", "there"} {
			w.add(name, withHandlers(v1.Container{ReadinessProbe: every(5)}))
			w.run(name, name+"-1")
		}
		idle.RemovePod("gone")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- idle.Run(ctx) }()
		w.stop = func() {
			cancel()
			<-done
		}
		w.wait(time.Second)
		if got, want := w.diary(), []string{"there: probed there-1 readiness: success", "there: there-1 ready=true"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
