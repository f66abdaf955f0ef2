package worker_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
)

// prober is a scripted prober: containers are started and ready when the test says so.
type prober struct {
	mu      sync.Mutex
	started map[string]bool // by container name
	ready   map[string]bool
	keeps   bool // it has no results yet, and leaves what was reported
	calls   []string
}

func newProber() *prober {
	return &prober{started: map[string]bool{}, ready: map[string]bool{}}
}

func (p *prober) called(call string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
}

func (p *prober) AddPod(*v1.Pod)                   { p.called("add") }
func (p *prober) StopLivenessAndStartup(types.UID) { p.called("stop liveness") }
func (p *prober) RemovePod(types.UID)              { p.called("remove") }

func (p *prober) UpdatePodStatus(_ *v1.Pod, status *v1.PodStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeps {
		return
	}
	for _, list := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			runs := list[i].State.Running != nil
			started := runs && p.started[list[i].Name]
			list[i].Started, list[i].Ready = &started, started && p.ready[list[i].Name]
		}
	}
}

func (p *prober) set(started, ready map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started, p.ready = started, ready
}

func TestASidecarMustHaveStartedBeforeTheNextContainer(t *testing.T) {
	probes := newProber()
	story(t, func(n *node) {
		pod := withInit(newPod("web"), sidecar("proxy"))
		n.update(pod)
		n.sleep(time.Minute)
		n.wantStarts("before the startup probe has passed", "proxy/0")
		n.wantPhase(pod, "before the startup probe has passed", v1.PodPending)
		probes.set(map[string]bool{"proxy": true}, nil)
		n.workers.Sync(pod.UID)
		synctest.Wait()
		n.wantStarts("after it has passed", "proxy/0", "main/0")
	}, func(o *worker.Options) { o.Prober = probes })
}

func TestProbesFollowTheLifeOfAPod(t *testing.T) {
	probes := newProber()
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 5 * time.Second}}))
		pod := newPod("web")
		n.update(pod)
		if n.container(pod, "main").Ready {
			t.Error("ready though no probe says so")
		}
		probes.set(map[string]bool{"main": true}, map[string]bool{"main": true})
		n.workers.Sync(pod.UID)
		synctest.Wait()
		if !n.container(pod, "main").Ready {
			t.Error("not ready though the probes say so")
		}
		n.delete(pod, 30)
		n.sleep(10 * time.Second)
		probes.mu.Lock()
		defer probes.mu.Unlock()
		got := slices.Compact(probes.calls)
		if want := []string{"add", "stop liveness", "remove"}; !slices.Equal(got, want) {
			t.Errorf("calls: got %q, want %q", got, want)
		}
	}, func(o *worker.Options) { o.Prober = probes })
}

func TestAContainerStaysReadyAcrossARestartUntilAProbeSaysOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, pod := newMachine(), newPod("web")
		before := m.run(t)
		before.update(pod)
		pod = pod.DeepCopy()
		pod.Status = before.get(pod) // what the API has by now: ready
		before.stop()

		probes := newProber()
		probes.keeps = true
		after := m.run(t, func(o *worker.Options) { o.Prober = probes })
		after.update(pod)
		if c := after.container(pod, "main"); !c.Ready || c.Started == nil || !*c.Started {
			t.Errorf("adopted: got ready %v, started %v; want both as before the restart", c.Ready, c.Started)
		}
		after.rt.Exit(after.newest(pod, "main").ID, runtimefake.Exit{Code: 1})
		after.sleep(time.Second)
		if c := after.container(pod, "main"); c.Ready || c.State.Running == nil {
			t.Errorf("another container: got %s, ready %v; want it running and not ready", describe(c), c.Ready)
		}
		after.stop()
	})
}
