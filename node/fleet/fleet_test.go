package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/statustest"
)

func TestFleetRunsAndEndsThePodsOfItsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add(names(20)...)
		early := w.bind("n3", "early") // before Run
		w.run()
		settle(time.Second)
		late, foreign := w.bind("n7", "late"), w.bind("elsewhere", "foreign")
		settle(time.Second)
		for _, pod := range []*v1.Pod{early, late} {
			if !ready(w.api.Pod(pod)) {
				t.Errorf("%s is not ready: %+v", pod.Name, w.api.Pod(pod).Status)
			}
		}
		if got := w.api.Pod(foreign).Status.Phase; got != "" && got != v1.PodPending {
			t.Errorf("the pod of another node is %s, want it left alone", got)
		}
		nodes, err := w.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 20 {
			t.Errorf("%d Nodes (%v), want 20", len(nodes.Items), err)
		}
		leases, err := w.client.CoordinationV1().Leases(v1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(leases.Items) != 20 {
			t.Errorf("%d leases (%v), want 20", len(leases.Items), err)
		}
		w.api.DeleteGracefully("default", "late", 30)
		settle(time.Second)
		if w.api.Pod(late) != nil {
			t.Error("the deleted pod is still there")
		}
		if w.api.Pod(early) == nil {
			t.Error("the other pod is gone")
		}
		if overlaps := w.api.Overlaps(); len(overlaps) > 0 {
			t.Errorf("two requests at once for %v", overlaps)
		}
	})
}

func TestNodesComeAndGoWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("a")
		kept := w.bind("a", "kept")
		waiting := w.bind("b", "waiting")
		w.run()
		settle(time.Second)
		if ready(w.api.Pod(waiting)) || !ready(w.api.Pod(kept)) {
			t.Fatal("want the pod of a ready, and that of b, which is not part of the fleet, not")
		}
		w.add("b")
		settle(time.Second)
		if !ready(w.api.Pod(waiting)) {
			t.Error("the pod of a node that was added is not ready")
		}
		if _, err := w.fleet.Add(NodeOptions{Options: node.Options{Name: "b"}, Handler: &simulated{}}); err == nil {
			t.Error("b could be added twice")
		}
		if err := w.fleet.Remove(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		if err := w.fleet.Remove(t.Context(), "b"); err == nil {
			t.Error("b could be removed twice")
		}
		w.api.ForgetRequests()
		w.bind("b", "later")
		w.api.DeleteGracefully("default", "waiting", 30)
		settle(5 * time.Minute)
		for _, r := range w.api.Requests() {
			if r.Resource == "leases" && r.Name == "kube-node-lease/b" || r.Resource == "nodes" && r.Name == "b" || r.PodName() == "later" || r.PodName() == "waiting" {
				t.Errorf("%s %s %s of a node that was removed", r.Verb, r.Resource, r.Name)
			}
		}
		if w.fleet.Node("b") != nil || len(w.fleet.Nodes()) != 1 {
			t.Error("b is still part of the fleet")
		}
		w.add("b")
		settle(time.Second)
		if w.api.Pod(waiting) != nil {
			t.Error("the pod that was deleted meanwhile is still there")
		}
	})
}

// A node of which every request hangs, whose handler hangs, or whose requests are all refused, delays no other.
func TestOneBadNodeDelaysNoOther(t *testing.T) {
	for name, fault := range map[string]error{"hangs": statustest.ErrHang, "is refused": statustest.DeniedByWebhook(403, metav1.StatusReasonForbidden),
		"fails": errors.New("connection reset")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.api.SetLatency(2 * time.Millisecond)
				w.api.SetFault(func(_ context.Context, r statustest.Request) error {
					if concerns(r, "bad") {
						return fault
					}
					return nil
				})
				w.add(names(8)...)
				if _, err := w.fleet.Add(NodeOptions{Options: node.Options{Name: "bad", Read: reading}, Handler: &simulated{manager: w.fleet.Manager()}}); err != nil {
					t.Fatal(err)
				}
				stuck := make(chan struct{})
				defer close(stuck)
				if _, err := w.fleet.Add(NodeOptions{Options: node.Options{Name: "stuck", Read: reading}, Handler: hangs{stuck}}); err != nil {
					t.Fatal(err)
				}
				for i := range 60 {
					w.bind("bad", fmt.Sprint("bad-", i))
				}
				w.bind("stuck", "stuck-0")
				w.bind("stuck", "stuck-1")
				w.run()
				settle(3 * time.Second)
				for round := range 20 { // of 2 s: beyond the timeout of requests and the first back-offs
					var pods []*v1.Pod
					for _, name := range names(8) {
						pods = append(pods, w.bind(name, fmt.Sprint(name, "-", round)))
					}
					settle(time.Second)
					for _, pod := range pods {
						if !ready(w.api.Pod(pod)) {
							t.Fatalf("round %d: %s is not ready a second after it was bound", round, pod.Name)
						}
						w.api.DeleteGracefully(pod.Namespace, pod.Name, 30)
					}
					settle(time.Second)
					for _, pod := range pods {
						if w.api.Pod(pod) != nil {
							t.Fatalf("round %d: %s is still there a second after it was deleted", round, pod.Name)
						}
					}
				}
				w.api.SetFault(nil)
				settle(2 * time.Minute)
				for _, pod := range w.api.Pods() {
					if pod.Spec.NodeName == "bad" && !ready(pod) {
						t.Fatalf("%s is not ready 2 minutes after the end of the fault", pod.Name)
					}
				}
			})
		})
	}
}

type hangs struct{ until chan struct{} }

func (h hangs) SyncPod(context.Context, *v1.Pod)   { <-h.until }
func (h hangs) ForgetPod(context.Context, *v1.Pod) { <-h.until }

type panics struct {
	simulated
	told int
}

func (p *panics) SyncPod(ctx context.Context, pod *v1.Pod) {
	if p.told++; p.told == 1 {
		panic("the handler is broken")
	}
	p.simulated.SyncPod(ctx, pod)
}

func TestHandlerThatPanicsIsCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.fleet.Add(NodeOptions{Options: node.Options{Name: "n", Read: reading}, Handler: &panics{simulated: simulated{w.fleet.Manager()}}}); err != nil {
			t.Fatal(err)
		}
		w.run()
		settle(time.Second)
		w.bind("n", "first")
		second := w.bind("n", "second")
		settle(time.Second)
		if !ready(w.api.Pod(second)) {
			t.Error("the pod after the panic is not ready")
		}
	})
}

// Leases are renewed each 10 s, although thousands of statuses wait for a slow server; and not all at once.
func TestLeasesAreNeverLateAndSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 40
		w := newWorld(t, func(o *Options) { o.QPS, o.Burst = 10, 10 })
		w.add(names(nodes)...)
		for i := range 400 {
			w.bind(fmt.Sprint("n", i%nodes), fmt.Sprint("pod-", i))
		}
		w.api.SetLatency(20 * time.Millisecond)
		w.run()
		settle(3 * time.Minute)
		last := map[string]time.Time{}
		perSecond := map[int64]int{}
		began := time.Now().Add(-2 * time.Minute)
		for _, r := range w.of("leases", "UPDATE") {
			if at, seen := last[r.Name]; seen && r.At.Sub(at) > 11*time.Second {
				t.Errorf("%s was renewed %v after the last time, want about 10 s", r.Name, r.At.Sub(at))
			}
			last[r.Name] = r.At
			if r.At.After(began) {
				perSecond[r.At.Unix()]++
			}
		}
		if len(last) != nodes {
			t.Errorf("%d leases were renewed, want %d", len(last), nodes)
		}
		for second, n := range perSecond {
			if n > nodes/2 {
				t.Errorf("%d of %d leases were renewed in second %d, want them spread over 10 s", n, nodes, second)
			}
		}
	})
}

// An idle fleet asks little besides the leases: a status of each Node every 5 minutes, and the version once a minute.
func TestIdleFleetAsksLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 30
		w := newWorld(t)
		w.add(names(nodes)...)
		for i := range nodes {
			w.bind(fmt.Sprint("n", i), fmt.Sprint("pod-", i))
		}
		w.run()
		settle(time.Minute)
		w.api.ForgetRequests()
		settle(10 * time.Minute)
		other := map[string]int{}
		total := 0
		for _, r := range w.api.Requests() {
			if r.Resource != "leases" {
				other[r.Verb+" "+r.Resource]++
				total++
			}
		}
		if most := 2*nodes + 30; total > most { // two statuses of each Node
			t.Errorf("%d requests in 10 minutes besides leases, want at most %d: %v", total, most, other)
		}
		if got := len(w.of("leases", "UPDATE")); got < 58*nodes || got > 61*nodes {
			t.Errorf("%d renewals, want about 60 of each of %d", got, nodes)
		}
	})
}

// With a budget that is used up for minutes, a withdrawal of any node goes first, and a node with one pod does not wait for one with many.
func TestBudgetIsSharedFairlyAndWithdrawalsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.QPS, o.Burst = 10, 10 })
		w.add("busy", "a", "b")
		losing := w.bind("b", "losing")
		w.run()
		settle(5 * time.Second)
		if !ready(w.api.Pod(losing)) {
			t.Fatal("the pod is not ready before the test")
		}
		for i := range 600 { // a minute of the budget
			w.bind("busy", fmt.Sprint("busy-", i))
		}
		settle(time.Second)
		single := w.bind("a", "single")
		settle(2 * time.Second)
		if !ready(w.api.Pod(single)) {
			t.Error("the one pod of a waits for the 600 of busy")
		}
		if _, err := w.fleet.Manager().SetPodStatus(w.api.Pod(losing), statusOf(losing, false, false)); err != nil {
			t.Fatal(err)
		}
		settle(500 * time.Millisecond)
		if ready(w.api.Pod(losing)) {
			t.Error("the withdrawal waits for starts")
		}
		if left := len(w.fleet.Manager().Pending()); left < 300 {
			t.Errorf("%d pods wait, want hundreds: the test shows nothing", left)
		}
	})
}

// A client that may not list all pods watches those of each node; one of a node's own serves that node alone.
func TestRightsDecideAboutWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Resource == "" && r.Verb == "LIST" && w.api.Lists() == 1 || r.Resource == "nodes" && (r.Verb == "LIST" || r.Verb == "WATCH") {
				return statustest.Forbidden(r, "cannot list at the cluster scope")
			}
			return nil
		})
		w.add("a", "b")
		own, err := w.fleet.Add(NodeOptions{Options: node.Options{Name: "own", Client: w.clientOf(), Read: reading}, Handler: &simulated{manager: w.fleet.Manager()}})
		if err != nil {
			t.Fatal(err)
		}
		w.run()
		settle(time.Second)
		pods := []*v1.Pod{w.bind("a", "pod-a"), w.bind("b", "pod-b"), w.bind("own", "pod-own")}
		settle(2 * time.Second)
		for _, pod := range pods {
			if !ready(w.api.Pod(pod)) {
				t.Errorf("%s is not ready", pod.Name)
			}
		}
		if got := own.Pods(); len(got) != 1 || got[0].Name != "pod-own" {
			t.Errorf("the node has %d pods, want its one", len(got))
		}
		if !own.Keeper().LeaseRenewed().After(time.Now().Add(-11 * time.Second)) {
			t.Error("the lease of the node with its own client was not renewed")
		}
		if err := w.fleet.Remove(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		w.add("late")
		pod := w.bind("late", "pod-late")
		settle(time.Second)
		if !ready(w.api.Pod(pod)) {
			t.Error("the pod of a node that was added later is not ready")
		}
	})
}

// An end that was not sent when the process ended is sent by the next one, also for nodes that are added late, from one journal.
func TestEndsOfAllNodesSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory()
		w := newWorld(t, func(o *Options) { o.Journal = kept })
		w.add("a", "b")
		pods := []*v1.Pod{w.bind("a", "pod-a"), w.bind("b", "pod-b")}
		w.run()
		settle(time.Second)
		w.api.SetFault(statustest.On("PATCH", statustest.ErrRefused))
		for _, pod := range pods {
			go func() {
				_, _ = w.fleet.Manager().SetPodStatus(w.api.Pod(pod), statusOf(pod, false, true))
			}()
		}
		settle(time.Second)
		w.stop()
		w.api.SetFault(nil)
		again := &world{T: t, api: w.api, client: w.client}
		f, err := New(Options{Client: w.client, Journal: kept, Logger: w.fleet.log})
		if err != nil {
			t.Fatal(err)
		}
		again.fleet = f
		again.add("a")
		again.run()
		settle(30 * time.Second)
		again.add("b")
		settle(30 * time.Second)
		for _, pod := range pods {
			if got := w.api.Pod(pod).Status.Phase; got != v1.PodSucceeded {
				t.Errorf("%s is %s after the restart, want Succeeded", pod.Name, got)
			}
		}
	})
}
