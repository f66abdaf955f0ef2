package status

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/node/pods"
)

// BenchmarkCalls is what one report costs its caller, of a manager that is not running: without an
// observer, and with a history that another goroutine makes records of at the same time.
func BenchmarkCalls(b *testing.B) {
	b.Run("alone", func(b *testing.B) { benchmarkCalls(b, func(*testing.B) Observer { return nil }) })
	b.Run("history", func(b *testing.B) {
		benchmarkCalls(b, func(b *testing.B) Observer {
			store := history.New(history.Options{File: filepath.Join(b.TempDir(), "history")})
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { store.Run(ctx) })
			b.Cleanup(func() { cancel(); running.Wait() })
			return store
		})
	})
}

func benchmarkCalls(b *testing.B, observer func(*testing.B) Observer) {
	for name, prepare := range map[string]func(*Manager, *v1.Pod) func(i int){
		"set_unchanged": func(m *Manager, pod *v1.Pod) func(int) {
			status := running(pod, true)
			return func(int) { m.SetPodStatus(pod, status) }
		},
		"set_changed": func(m *Manager, pod *v1.Pod) func(int) {
			statuses := [2]v1.PodStatus{running(pod, true), running(pod, true)}
			statuses[0].ContainerStatuses[0].RestartCount = 1
			return func(i int) { m.SetPodStatus(pod, statuses[i%2]) }
		},
		"readiness_flip": func(m *Manager, pod *v1.Pod) func(int) {
			return func(i int) { m.SetContainerReadiness(pod.UID, "process://"+string(pod.UID), i%2 == 1) }
		},
	} {
		b.Run(name, func(b *testing.B) {
			table := pods.New()
			pod := newPod("web")
			pod.ResourceVersion = "1"
			table.Set(pod)
			m, err := New(Options{Client: &echoAPI{}, Pods: table, Observer: observer(b)})
			if err != nil {
				b.Fatal(err)
			}
			m.SetPodStatus(pod, running(pod, true))
			call := prepare(m, pod)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				call(i)
				i++
			}
		})
	}
}
