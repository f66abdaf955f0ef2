package status

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
)

// BenchmarkGrowth is one change, from the report until the API server has it, with ever
// more pods in the cache and an API that answers at once. The cost must not depend on how
// many pods there are; the last line says how much it does.
func BenchmarkGrowth(b *testing.B) {
	var first, latest float64
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			g := newGrowth(b, n)
			for b.Loop() {
				g.change()
			}
			latest = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if n == 100 {
				first = latest
			}
			b.ReportMetric(latest/first, "x-vs-100-pods")
		})
	}
}

// growth is a manager whose cache holds many pods, all of them delivered.
type growth struct {
	manager *Manager
	pods    []*v1.Pod
	patched chan struct{}
	changes int
}

func newGrowth(b *testing.B, n int) *growth {
	table := pods.New()
	api := &echoAPI{}
	manager, err := New(Options{Client: api, Pods: table})
	if err != nil {
		b.Fatal(err)
	}
	api.manager = manager
	g := &growth{manager: manager, patched: make(chan struct{}, 1)}
	for i := range n {
		pod := newPod(fmt.Sprintf("pod-%06d", i))
		pod.ResourceVersion = "1"
		table.Set(pod)
		g.pods = append(g.pods, pod)
		if _, err := manager.SetPodStatus(pod, running(pod, true)); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- manager.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
	})
	if err := manager.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	api.patched.Store(&g.patched)
	return g
}

// change reports that a container was restarted, each time of another pod, and waits for the patch.
func (g *growth) change() {
	// A prime number apart, so that no two changes in a row are close to each other in memory.
	pod := g.pods[g.changes*7919%len(g.pods)]
	g.changes++
	status := running(pod, true)
	status.ContainerStatuses[0].RestartCount = int32(g.changes)
	if _, err := g.manager.SetPodStatus(pod, status); err != nil {
		panic(err)
	}
	<-g.patched
}

// echoAPI answers a patch at once, with the pod as the manager wants it to be.
type echoAPI struct {
	manager *Manager
	version atomic.Int64
	patched atomic.Pointer[chan struct{}]
}

func (e *echoAPI) PatchStatus(_ context.Context, namespace, name string, _ []byte) (*v1.Pod, error) {
	pod := newPod(name)
	pod.ResourceVersion = strconv.FormatInt(1+e.version.Add(1), 10)
	pod.Status, _ = e.manager.GetPodStatus(pod.UID)
	if patched := e.patched.Load(); patched != nil {
		*patched <- struct{}{}
	}
	return pod, nil
}

func (e *echoAPI) List(context.Context) ([]v1.Pod, error) { return nil, nil }

func (e *echoAPI) Get(_ context.Context, _, name string) (*v1.Pod, error) { return newPod(name), nil }

func (e *echoAPI) Delete(context.Context, string, string, types.UID) error { return nil }
