package engine

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/podstatus"
)

// crowd is a source of many pods, with a history as a node has it.
type crowd struct {
	pods  map[types.UID]*v1.Pod
	uids  []types.UID
	ready map[types.UID]bool
	store *history.Store
}

// perPod is how many records the history keeps of a pod. All have that many, so that those that change more often do not cost more.
const perPod = 12

// newCrowd makes pods that have become ready and not ready so many times.
func newCrowd(n, toggles int) *crowd {
	c := &crowd{pods: map[types.UID]*v1.Pod{}, ready: map[types.UID]bool{}, store: history.New(history.Options{Total: 20 * n, PerPod: perPod})}
	for i := range n {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", i), Namespace: "shop", UID: types.UID(fmt.Sprint("uid-", i)), Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.Now()},
			Spec:       v1.PodSpec{NodeName: "node", Containers: []v1.Container{{Name: "app", Image: "web:1"}, {Name: "side", Image: "side:1"}}},
		}
		c.pods[pod.UID], c.uids = pod, append(c.uids, pod.UID)
		for range toggles {
			c.change(pod.UID)
		}
		c.store.Seq() // takes in what has come
	}
	return c
}

// change makes a pod ready that is not, and the other way round.
func (c *crowd) change(uid types.UID) {
	ready := !c.ready[uid]
	c.ready[uid] = ready
	before := c.pods[uid]
	pod := *before
	status := v1.ConditionFalse
	if ready {
		status = v1.ConditionTrue
	}
	now := metav1.Now()
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &pod.CreationTimestamp, Conditions: []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp},
		{Type: v1.PodReady, Status: status, LastTransitionTime: now}}}
	started := true
	for _, spec := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: spec.Name, Image: spec.Image, Ready: ready, Started: &started, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}}})
	}
	c.pods[uid] = &pod
	c.store.Changed(podstatus.Change{UID: uid, Namespace: pod.Namespace, Name: pod.Name, Created: pod.CreationTimestamp.Time, Old: &before.Status, New: &pod.Status, At: now.Time})
}

func (c *crowd) UIDs() []types.UID { return c.uids }

func (c *crowd) Pod(uid types.UID) (view.Pod, bool) {
	pod, ok := c.pods[uid]
	return view.Pod{Facts: explain.Facts{Now: time.Now(), Pod: pod}}, ok
}

func (c *crowd) Gone() []view.PodHistory { return nil }

func (c *crowd) History(namespace, name string) (view.PodHistory, bool) {
	return c.store.Pod(namespace, name)
}

func (c *crowd) Node() view.NodeDetail { return view.NodeDetail{Name: "node"} }

func (c *crowd) Watch(ctx context.Context, _ func(types.UID)) error {
	<-ctx.Done()
	return nil
}

// fifty are at least 50 rules: those of the pack, and those about pods again under another name.
func fifty(tb testing.TB) *ruleset.Set {
	data, err := fs.ReadFile(ruleset.PackFiles(), "pods.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	set := parsed(tb, strings.ReplaceAll(string(data), "- name: ", "- name: Again")).Over(ruleset.Pack())
	if len(set.Rules()) < 50 {
		tb.Fatalf("there are %d rules", len(set.Rules()))
	}
	return set
}

// counting counts what a source is asked for.
type counting struct {
	*crowd
	pods, histories, lists, nodes int
}

func (c *counting) UIDs() []types.UID { c.lists++; return c.crowd.UIDs() }

func (c *counting) Pod(uid types.UID) (view.Pod, bool) { c.pods++; return c.crowd.Pod(uid) }

func (c *counting) History(namespace, name string) (view.PodHistory, bool) {
	c.histories++
	return c.crowd.History(namespace, name)
}

func (c *counting) Node() view.NodeDetail { c.nodes++; return c.crowd.Node() }

// A change reads the facts of its pod once, and no others, however many pods and rules there are.
func TestAChangeLooksAtItsPodAlone(t *testing.T) {
	source := &counting{crowd: newCrowd(500, 1)}
	c := newCore(&Options{Source: source, Set: fifty(t)}, time.Now())
	for _, uid := range source.uids {
		c.evaluate(context.Background(), uid, time.Now())
	}
	source.pods, source.histories, source.lists, source.nodes = 0, 0, 0, 0
	source.change("uid-77")
	c.evaluate(context.Background(), "uid-77", time.Now())
	if source.pods != 1 || source.histories != 1 || source.lists != 0 || source.nodes != 0 {
		t.Errorf("one change asked for %d pods, %d histories, %d lists of pods and %d nodes", source.pods, source.histories, source.lists, source.nodes)
	}
}

// measured returns what one change costs with so many pods: the facts are read, all rules of the pod
// are evaluated, and its next look is scheduled.
func measured(b *testing.B, pods int) {
	source := newCrowd(pods, 7)
	options := &Options{Source: source, Set: fifty(b), Node: "node"}
	c := newCore(options, time.Now())
	for _, uid := range append([]types.UID{""}, source.uids...) {
		c.evaluate(context.Background(), uid, time.Now())
	}
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		for uid := source.uids[i*7919%pods]; ; { // there and back, so that all pods are as before
			source.change(uid)
			c.evaluate(context.Background(), uid, time.Now())
			if source.ready[uid] {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/change")
}

// BenchmarkChange: the cost of one change with 50 rules does not depend on the number of pods.
func BenchmarkChange(b *testing.B) {
	for _, pods := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) { measured(b, pods) })
	}
}

// BenchmarkRatio takes turns between 100 and 10,000 pods, so that both see the same machine, and reports the ratio.
func BenchmarkRatio(b *testing.B) {
	small, large := ratioSide(b, 100), ratioSide(b, 10_000)
	var spent [2][]time.Duration
	for i := range max(b.N, 2000) {
		spent[0] = append(spent[0], small(i))
		spent[1] = append(spent[1], large(i))
	}
	slices.Sort(spent[0])
	slices.Sort(spent[1])
	few, many := spent[0][len(spent[0])/2], spent[1][len(spent[1])/2]
	b.ReportMetric(float64(few.Microseconds()), "µs/change@100")
	b.ReportMetric(float64(many.Microseconds()), "µs/change@10000")
	b.ReportMetric(float64(many)/float64(few), "ratio")
}

func ratioSide(b *testing.B, pods int) func(i int) time.Duration {
	source := newCrowd(pods, 7)
	c := newCore(&Options{Source: source, Set: fifty(b), Node: "node"}, time.Now())
	for _, uid := range append([]types.UID{""}, source.uids...) {
		c.evaluate(context.Background(), uid, time.Now())
	}
	return func(i int) time.Duration {
		uid := source.uids[i*7919%pods]
		began := time.Now()
		for range 2 { // there and back, so that all pods are as before
			source.change(uid)
			c.evaluate(context.Background(), uid, time.Now())
		}
		return time.Since(began) / 2
	}
}

// BenchmarkMemory: what a pod without alerts costs the engine. It measures once.
func BenchmarkMemory(b *testing.B) {
	const pods = 10_000
	source := newCrowd(pods, 1)
	set := fifty(b)
	for _, uid := range source.uids {
		newCore(&Options{Source: source, Set: set}, time.Now()).evaluate(context.Background(), uid, time.Now())
	}
	before := heapBytes()
	c := newCore(&Options{Source: source, Set: set, Node: "node"}, time.Now())
	for _, uid := range source.uids {
		c.evaluate(context.Background(), uid, time.Now())
	}
	b.ReportMetric(float64(heapBytes()-before)/pods, "bytes/pod")
	runtime.KeepAlive(c)
}

func heapBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
