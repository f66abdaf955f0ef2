package overview_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/overview"
	"github.com/statusd/statusd/internal/view"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cluster is an API server with a proxy to observers.
type cluster struct {
	nodes []v1.Node
	pods  []v1.Pod
	// answers serve the requests to observers, by pod. A pod without one never answers.
	answers map[string]http.HandlerFunc

	mu           sync.Mutex // guards what follows
	asking, most int
}

func (c *cluster) add(name string, answer http.HandlerFunc, conditions ...v1.NodeCondition) {
	c.nodes = append(c.nodes, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Conditions: conditions}})
	c.observe(name, answer)
}

func (c *cluster) observe(node string, answer http.HandlerFunc) {
	pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "observe-" + node, Namespace: "statusd"}, Spec: v1.PodSpec{NodeName: node}, Status: v1.PodStatus{PodIP: "192.0.2.1"}}
	pod.Spec.Containers = []v1.Container{{Ports: []v1.ContainerPort{{Name: "metrics", ContainerPort: 10277}}}}
	c.pods = append(c.pods, pod)
	if c.answers == nil {
		c.answers = map[string]http.HandlerFunc{}
	}
	c.answers[pod.Name] = answer
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/api/v1/nodes":
		_ = json.NewEncoder(answer).Encode(v1.NodeList{Items: c.nodes})
	case path == "/api/v1/namespaces/statusd/pods" && r.URL.Query().Get("labelSelector") == "app.kubernetes.io/name=statusd-observe":
		_ = json.NewEncoder(answer).Encode(v1.PodList{Items: c.pods})
	case strings.HasSuffix(path, "/proxy/overview"):
		c.count(1)
		defer c.count(-1)
		name := strings.TrimPrefix(strings.Split(path, "/")[6], "http:")
		serve := c.answers[strings.TrimSuffix(name, ":10277")]
		if serve == nil {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		serve(answer, r)
	default:
		answer.WriteHeader(http.StatusNotFound)
	}
	return answer.Result(), nil
}

func (c *cluster) count(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking += by
	c.most = max(c.most, c.asking)
}

func (c *cluster) client(t *testing.T) kubernetes.Interface {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://cluster", Transport: c, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func says(o view.Overview) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(o) }
}

func overviewOf(node string, health guard.Health, drift ...audit.Kind) view.Overview {
	o := view.Overview{Node: node, At: now, Audit: &view.AuditOverview{}, Guard: &view.GuardOverview{Health: health, Since: now}}
	for _, kind := range drift {
		o.Audit.Drift = append(o.Audit.Drift, view.DriftOverview{Kind: kind, Count: 1, Since: now, Certainty: audit.Certain})
	}
	return o
}

func names(nodes []overview.Node) string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return strings.Join(list, " ")
}

func TestGather_WorstFirst(t *testing.T) {
	c := &cluster{}
	silent := overviewOf("silent", guard.Healthy)
	silent.Audit.Silent = []audit.Side{audit.SideRuntime}
	older := overviewOf("older", guard.Unhealthy)
	older.Guard.Since = now.Add(-time.Hour)
	for _, o := range []view.Overview{
		overviewOf("fine", guard.Healthy), silent, overviewOf("degraded", guard.Degraded), overviewOf("drift", guard.Healthy, audit.StuckTerminating),
		overviewOf("more-drift", guard.Healthy, audit.StuckTerminating, audit.ForeignWriter), overviewOf("unhealthy", guard.Unhealthy), older, overviewOf("twice", guard.Healthy, audit.TwoKubelets),
		overviewOf("unknown", guard.Unknown),
	} {
		c.add(o.Node, says(o))
	}
	c.nodes = append(c.nodes, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "absent"}}) // for how long is not known
	nodes, err := overview.Gather(t.Context(), c.client(t), "statusd")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(nodes), "twice older unhealthy more-drift drift degraded absent unknown silent fine"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Each node that does not answer is there, with the reason and with what its Node says.
func TestGather_NamesWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue}
		dead := []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}, {Type: "KubeletHealthy", Status: v1.ConditionFalse}}
		lies := []v1.NodeCondition{ready, {Type: "StatusTruthful", Status: v1.ConditionFalse}}
		c.add("fine", says(overviewOf("fine", guard.Healthy)), ready)
		c.add("hangs", nil, dead...)
		c.add("lies", nil, lies...)
		c.add("stranger", says(overviewOf("fine", guard.Healthy)), ready)
		c.add("garbage", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, ready)
		c.add("endless", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"node":"`+strings.Repeat("x", 1<<20)+`"}`)
		}, ready)
		c.add("older", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, ready)
		c.nodes = append(c.nodes, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{ready}}})
		c.observe("deleted", says(overviewOf("deleted", guard.Healthy)))
		c.add("starting", nil, ready)
		c.pods[len(c.pods)-1].Status.PodIP = ""
		began := time.Now()
		nodes, err := overview.Gather(t.Context(), c.client(t), "statusd")
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > overview.PerNode {
			t.Errorf("it took %s", took)
		}
		want := map[string]string{
			"fine": "", "deleted": "", "hangs": "its observer does not answer in time", "lies": "its observer does not answer in time",
			"stranger": `its observer answers for node "fine"`, "garbage": "its answer cannot be read", "endless": "its answer cannot be read",
			"older": "its observer serves no overview", "bare": "no observer runs there", "starting": "its observer has not started",
		}
		for _, n := range nodes {
			if (n.Problem == "") != (want[n.Name] == "") || !strings.Contains(n.Problem, want[n.Name]) || (n.Overview == nil) != (n.Problem != "") {
				t.Errorf("%s: got %q, want %q", n.Name, n.Problem, want[n.Name])
			}
		}
		if got := names(nodes); len(nodes) != len(want) || !strings.HasPrefix(got, "hangs lies ") || !strings.HasSuffix(got, " deleted fine") {
			t.Errorf("got %s", got)
		}
	})
}

// A cluster of which no observer answers costs a bounded time and a bounded number of connections.
func TestGather_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		for i := range 1000 {
			c.add(fmt.Sprintf("node-%04d", i), nil)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		began := time.Now()
		nodes, err := overview.Gather(ctx, c.client(t), "statusd")
		if err != nil {
			t.Fatal(err)
		}
		notAsked := 0
		for _, n := range nodes {
			if strings.HasPrefix(n.Problem, "not asked") {
				notAsked++
			}
		}
		if took := time.Since(began); took > 15*time.Second || c.most != overview.InFlight || len(nodes) != 1000 || notAsked < 1000-4*overview.InFlight {
			t.Errorf("got %d nodes after %s, %d at once, %d not asked", len(nodes), took, c.most, notAsked)
		}
	})
}
