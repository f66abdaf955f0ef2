package fleet

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/statustest"
)

// Nodes that an administrator deletes stay deleted, are not asked for all the time, and are kept again when they are put back. Other
// nodes do not notice.
func TestDeletedNodes_StayDeletedAndAskLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deleted = 20
		w := newWorld(t)
		w.add(names(deleted + 1)...)
		w.run()
		settle(time.Second)
		pod, other := w.bind("n0", "web"), w.bind(fmt.Sprint("n", deleted), "other")
		settle(time.Second)
		nodes := w.client.CoreV1().Nodes()
		for _, name := range names(deleted) {
			if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		settle(time.Minute)
		w.api.ForgetRequests()
		settle(10 * time.Minute)
		if n := len(w.of("nodes", "GET")) + len(w.of("nodes", "CREATE")); n > 4*deleted+10 {
			t.Errorf("%d requests for %d deleted Nodes in 10 minutes", n, deleted)
		}
		if list, err := nodes.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
			t.Errorf("got %d Nodes, %v; want the deleted ones to stay so", len(list.Items), err)
		}
		if !ready(w.api.Pod(pod)) || !ready(w.api.Pod(other)) {
			t.Error("a pod lost its readiness with a Node")
		}
		if _, err := nodes.Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		settle(15 * time.Second)
		node, err := nodes.Get(t.Context(), "n0", metav1.GetOptions{})
		if err != nil || !slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue }) {
			t.Errorf("15 s after it was put back: %v, conditions %+v; want it Ready", err, node.Status.Conditions)
		}
	})
}

// A server that serves few requests a second for a while, as one that starts or lacks processors, gets no more than it can answer: hundreds
// of requests at once would all end by their timeout, and be sent again.
func TestSlowServer_GetsWhatItCanAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 300
		w := newWorld(t)
		working := make(chan struct{}, 1) // one request at a time, for 100 ms, also when the client has gone
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Resource == "nodes" || r.Resource == "leases" {
				working <- struct{}{}
				time.Sleep(100 * time.Millisecond)
				<-working
			}
			return nil
		})
		w.add(names(nodes)...)
		w.run()
		settle(time.Minute)
		requests := len(w.of("nodes", "GET")) + len(w.of("nodes", "CREATE")) + len(w.of("leases", "GET"))
		if requests > 800 {
			t.Errorf("%d requests in a minute to a server that serves 600", requests)
		}
		w.api.SetFault(nil)
		settle(time.Minute)
		list, err := w.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != nodes {
			t.Errorf("%d of %d Nodes are registered a minute later (%v)", len(list.Items), nodes, err)
		}
	})
}

// Renewals that take seconds do not make the next ones late, and one without an answer is tried again at once, without a read.
func TestSlowLeases_AreRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 20
		w := newWorld(t)
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Resource == "leases" {
				time.Sleep(4 * time.Second)
			}
			return nil
		})
		w.add(names(nodes)...)
		w.run()
		settle(time.Minute)
		gets := len(w.of("leases", "GET"))
		settle(5 * time.Minute)
		last := map[string]time.Time{}
		for _, r := range w.of("leases", "UPDATE") {
			if at, seen := last[r.Name]; seen && r.At.Sub(at) > 11*time.Second {
				t.Errorf("%s was renewed %v after the last time, want about 10 s", r.Name, r.At.Sub(at))
			}
			last[r.Name] = r.At
		}
		if len(last) != nodes {
			t.Errorf("%d leases were renewed, want %d", len(last), nodes)
		}
		w.api.SetFault(statustest.On("UPDATE", statustest.ErrHang))
		settle(11 * time.Second) // each has one renewal that hangs
		w.api.SetFault(nil)
		settle(20 * time.Second)
		for _, n := range w.fleet.Nodes() {
			if at := n.Keeper().LeaseRenewed(); time.Since(at) > 11*time.Second {
				t.Errorf("%s was last renewed %v ago", n.Name(), time.Since(at))
			}
		}
		if n := len(w.of("leases", "GET")) - gets; n > 0 {
			t.Errorf("%d leases were read although the server has refused nothing", n)
		}
	})
}

// Nodes are added and removed in a loop, with and without time to deliver, while pods come and go and requests fail: other nodes do not
// notice, and what is added last works.
func TestNodesAddedAndRemovedInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.api.SetLatency(5 * time.Millisecond)
		w.add("stays")
		w.run()
		settle(time.Second)
		var looping sync.WaitGroup
		for i := range 6 {
			name := fmt.Sprint("loop-", i/2) // two goroutines for each name: one of them is refused
			looping.Go(func() {
				for round := range 40 {
					_, err := w.fleet.Add(NodeOptions{Options: node.Options{Name: name, Read: reading}, Handler: &simulated{manager: w.fleet.Manager()}})
					if err == nil {
						w.bind(name, fmt.Sprint(name, "-", i, "-", round))
					}
					time.Sleep(time.Duration(7*(i+round)%50) * time.Millisecond)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round%3)*time.Second)
					_ = w.fleet.Remove(ctx, name) // of the other goroutine, maybe
					cancel()
				}
			})
		}
		for round := range 20 {
			if w.api.SetFault(nil); round%4 == 3 {
				w.api.SetFault(statustest.On("PATCH", statustest.ErrRefused))
			}
			pod := w.bind("stays", fmt.Sprint("stays-", round))
			settle(100 * time.Millisecond)
			if round%4 != 3 && !ready(w.api.Pod(pod)) {
				t.Errorf("round %d: the pod of the node that stays is not ready", round)
			}
		}
		looping.Wait()
		w.api.SetFault(nil)
		settle(time.Minute)
		if got := w.fleet.Nodes(); len(got) != 1 {
			t.Errorf("%d nodes are left, want the one that stays", len(got))
		}
		w.add("loop-0", "loop-1", "loop-2")
		settle(time.Minute)
		pods := w.api.Pods()
		if len(pods) < 40 {
			t.Errorf("%d pods: the loops have done little", len(pods))
		}
		for _, pod := range pods {
			if !ready(pod) {
				t.Errorf("%s of %s is not ready at the end: %+v", pod.Name, pod.Spec.NodeName, pod.Status)
			}
		}
		if pending := w.fleet.Manager().Pending(); len(pending) > 0 {
			t.Errorf("%d pods are pending at the end: %+v", len(pending), pending[0])
		}
	})
}

// queries notes the query of each list.
type queries struct {
	http.RoundTripper
	mu    sync.Mutex
	lists []url.Values
}

func (q *queries) RoundTrip(r *http.Request) (*http.Response, error) {
	if values := r.URL.Query(); r.Method == http.MethodGet && !values.Has("watch") && !strings.HasSuffix(r.URL.Path, "/n0") {
		q.mu.Lock()
		q.lists = append(q.lists, values)
		q.mu.Unlock()
	}
	return q.RoundTripper.RoundTrip(r)
}

// The check of the rights in a large cluster reads one pod: with resource version 0 the API server ignores the limit.
func TestCheckOfRights_ReadsOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &queries{}
		w := newWorld(t, func(o *Options) {
			config := statustest.New().Config()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				seen.RoundTripper = next
				return seen
			})
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			o.Client = client
		})
		w.add("n0")
		w.run()
		settle(time.Second)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		limited := 0
		for _, q := range seen.lists {
			if q.Get("limit") != "1" {
				continue
			}
			if limited++; q.Get("resourceVersion") == "0" {
				t.Errorf("a list of %v reads everything", q)
			}
		}
		if limited != 2 {
			t.Errorf("%d lists with a limit, want those of pods and Nodes: %v", limited, seen.lists)
		}
	})
}
