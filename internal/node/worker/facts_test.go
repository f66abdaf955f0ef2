package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// steps is an observer that remembers.
type steps struct {
	mu   sync.Mutex
	list []string
}

func (s *steps) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, fmt.Sprintf(format, args...))
}

func (s *steps) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

func (s *steps) Admitted(pod *v1.Pod, r *fit.Rejection, _ time.Time) {
	if r != nil {
		s.add("%s rejected %s: %s", pod.Name, r.Reason, r.Message)
		return
	}
	s.add("%s admitted", pod.Name)
}

func (s *steps) HookStep(h worker.HookStep) {
	if !h.Ended {
		s.add("%s %s runs", h.Container, h.Hook)
		return
	}
	s.add("%s %s took %s: %v", h.Container, h.Hook, h.At.Sub(h.Began), h.Err)
}

func (s *steps) Ending(pod *v1.Pod, reason, message string, _ time.Time) {
	s.add("%s ends %s: %s", pod.Name, reason, message)
}

func (s *steps) want(t testing.TB, what string, want ...string) {
	t.Helper()
	if got := s.take(); !slices.Equal(got, want) {
		t.Errorf("%s: got steps %q, want %q", what, got, want)
	}
}

func (n *node) facts(pod *v1.Pod, container string) podstatus.ContainerFacts {
	n.t.Helper()
	f, known := n.workers.Facts(pod.UID)
	if !known {
		n.t.Fatalf("pod %s has no worker", pod.Name)
	}
	return f.Containers[container]
}

func TestFactsShowHooksAndWhenAContainerIsKilled(t *testing.T) {
	told := &steps{}
	story(t, func(n *node) {
		n.rt.ExecWith(func(ctx context.Context, _ runtime.Container, command []string) (runtime.ExecResult, error) {
			select {
			case <-time.After(map[string]time.Duration{"warm": 5 * time.Second, "drain": time.Minute}[command[0]]):
				return runtime.ExecResult{}, nil
			case <-ctx.Done():
				return runtime.ExecResult{}, ctx.Err()
			}
		})
		pod := newPod("web", v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{PostStart: execHandler("warm"), PreStop: execHandler("drain")}})
		began := time.Now()
		n.update(pod)
		if got, want := n.facts(pod, "main"), (podstatus.ContainerFacts{Hook: worker.PostStart, HookSince: began}); got != want {
			t.Errorf("while postStart runs: got %+v, want %+v", got, want)
		}
		n.sleep(6 * time.Second)
		if got := n.facts(pod, "main"); got != (podstatus.ContainerFacts{}) {
			t.Errorf("while it runs: got %+v, want nothing", got)
		}
		told.want(t, "start", "web admitted", "main postStart runs", "main postStart took 5s: <nil>")

		deleted := time.Now()
		n.delete(pod, 20)
		if got, want := n.facts(pod, "main"), (podstatus.ContainerFacts{Hook: worker.PreStop, HookSince: deleted, KillAt: deleted.Add(20 * time.Second)}); got != want {
			t.Errorf("while preStop runs: got %+v, want %+v", got, want)
		}
		n.sleep(time.Minute)
		if got := n.facts(pod, "main"); got != (podstatus.ContainerFacts{}) {
			t.Errorf("after the end: got %+v, want nothing", got)
		}
		told.want(t, "end", "web ends Deleted: grace period 20s", "main preStop runs", "main preStop took 20s: canceled, because the grace period is over")
	}, func(o *worker.Options) { o.Observer = told })
}

func TestFactsShowWhenACrashingContainerStartsNext(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second, ExitCode: 3}}))
		pod := newPod("web")
		n.update(pod)
		n.sleep(2500 * time.Millisecond) // it has ended twice, at 1 s and at 2 s
		if got, want := n.facts(pod, "main").NextStart, n.begin.Add(12*time.Second); !got.Equal(want) {
			t.Errorf("next start: got %v, want %v", got, want)
		}
		n.sleep(10 * time.Second)
		if got := n.facts(pod, "main").NextStart; !got.IsZero() {
			t.Errorf("next start while it runs: got %v, want none", got)
		}
		n.sleep(10 * time.Second)
		if got := n.facts(pod, "main").NextStart; got.IsZero() {
			t.Error("next start: got none, want one in the second back-off")
		}
		n.delete(pod, 1)
		if got := n.facts(pod, "main").NextStart; !got.IsZero() {
			t.Errorf("next start of a pod that has ended: got %v, want none", got)
		}
	})
}

func TestRejectionsAreObserved(t *testing.T) {
	told := &steps{}
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		told.want(t, "rejection", "web rejected OutOfcpu: too small")
	}, func(o *worker.Options) {
		o.Observer = told
		o.Admit = func(*v1.Pod, []*v1.Pod) *fit.Rejection {
			return &fit.Rejection{Reason: "OutOfcpu", Message: "too small"}
		}
	})
}
