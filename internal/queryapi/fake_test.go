package queryapi_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/podstatus"
)

// noon is when the facts of the golden files were collected.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// fakeNode is a source of made-up pods.
type fakeNode struct {
	now func() time.Time

	mu      sync.Mutex // guards what follows
	pods    map[types.UID]view.Pod
	gone    []view.PodHistory
	history map[string]view.PodHistory
	node    view.NodeDetail
	asked   int // how often a pod was asked for
	changed func(types.UID)
}

func newFakeNode(now func() time.Time) *fakeNode {
	return &fakeNode{
		now: now, pods: map[types.UID]view.Pod{}, history: map[string]view.PodHistory{}, changed: func(types.UID) {},
		node: view.NodeDetail{
			Name: "n1", UID: "node-1", Version: "v0.1.0", Runtime: "process://1",
			Conditions:  []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}},
			Addresses:   []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.1"}},
			Capacity:    v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")},
			Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1900m")},
			Requested:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")},
		},
	}
}

func (n *fakeNode) UIDs() []types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	var uids []types.UID
	for uid := range n.pods {
		uids = append(uids, uid)
	}
	return uids
}

func (n *fakeNode) Pod(uid types.UID) (view.Pod, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	p, ok := n.pods[uid]
	p.Facts.Now = n.now()
	return p, ok
}

func (n *fakeNode) Gone() []view.PodHistory {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.gone)
}

func (n *fakeNode) History(namespace, name string) (view.PodHistory, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, ok := n.history[namespace+"/"+name]
	return h, ok
}

func (n *fakeNode) Node() view.NodeDetail {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node
}

func (n *fakeNode) Watch(ctx context.Context, changed func(types.UID)) error {
	n.mu.Lock()
	n.changed = changed
	n.mu.Unlock()
	<-ctx.Done()
	return nil
}

// set stores a pod and announces it.
func (n *fakeNode) set(p view.Pod) {
	n.mu.Lock()
	n.pods[p.Facts.Pod.UID] = p
	changed := n.changed
	n.mu.Unlock()
	changed(p.Facts.Pod.UID)
}

func (n *fakeNode) remove(uid types.UID) {
	n.mu.Lock()
	delete(n.pods, uid)
	changed := n.changed
	n.mu.Unlock()
	changed(uid)
}

func (n *fakeNode) questions() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// running is a pod that serves; change makes something else of it.
func running(name string, change ...func(*view.Pod)) view.Pod {
	started := metav1.NewTime(noon.Add(-time.Hour))
	yes := true
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: started, Labels: map[string]string{"app": name},
			Annotations: map[string]string{v1.LastAppliedConfigAnnotation: "hunter2"},
		},
		Spec: v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "main", Image: "host", Command: []string{"hunter2"}, Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}}}},
	}
	condition := func(t v1.PodConditionType) v1.PodCondition {
		return v1.PodCondition{Type: t, Status: v1.ConditionTrue, LastTransitionTime: started}
	}
	status := &v1.PodStatus{
		Phase: v1.PodRunning, PodIP: "192.0.2.7", StartTime: &started,
		Conditions: []v1.PodCondition{condition(v1.PodScheduled), condition(v1.PodInitialized), condition(v1.ContainersReady), condition(v1.PodReady)},
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", Ready: true, Started: &yes, ContainerID: "process://1", Image: "host",
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: started}},
		}},
	}
	p := view.Pod{
		Facts: explain.Facts{Pod: pod, Status: status, Delivery: &podstatus.Delivery{Version: 7, Accepted: 7, AcceptedAt: noon.Add(-59 * time.Minute)}, Node: explain.Node{Name: "n1"}},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

// looping makes of a pod one in crash-loop back-off that is started again at a time.
func looping(next time.Time) func(*view.Pod) {
	return func(p *view.Pod) {
		ended := metav1.NewTime(noon.Add(-2 * time.Minute))
		s := &p.Facts.Status.ContainerStatuses[0]
		s.Ready, s.Started, s.RestartCount = false, nil, 4
		s.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 2m40s restarting failed container"}}
		s.LastTerminationState = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", FinishedAt: ended}}
		for i := range p.Facts.Status.Conditions {
			if c := &p.Facts.Status.Conditions[i]; c.Type == v1.PodReady || c.Type == v1.ContainersReady {
				c.Status, c.Reason, c.LastTransitionTime = v1.ConditionFalse, "ContainersNotReady", ended
			}
		}
		p.Facts.Containers = map[string]explain.Container{"main": {ContainerFacts: podstatus.ContainerFacts{NextStart: next}}}
		p.Facts.Delivery = &podstatus.Delivery{Version: 9, Accepted: 8, AcceptedAt: noon.Add(-59 * time.Minute), Since: noon.Add(-12 * time.Second), Attempts: 4, Error: "503 Service Unavailable", NextTry: noon.Add(8 * time.Second)}
	}
}

// restarts sets the number of restarts of the first container.
func restarts(count int) func(*view.Pod) {
	return func(p *view.Pod) { p.Facts.Status.ContainerStatuses[0].RestartCount = int32(count) }
}

func newServer(t *testing.T, node *fakeNode, change ...func(*queryapi.Options)) *queryapi.Server {
	t.Helper()
	options := queryapi.Options{Sources: view.Sources{Source: node, Location: time.UTC}, Epoch: "e1"}
	for _, c := range change {
		c(&options)
	}
	s, err := queryapi.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sampleNode has one pod of each kind that the golden files show.
func sampleNode() *fakeNode {
	n := newFakeNode(func() time.Time { return noon })
	n.set(running("web"))
	n.set(running("loop", looping(noon.Add(38*time.Second))))
	n.set(running("db", func(p *view.Pod) {
		p.Facts.Pod.Namespace = "shop"
		p.Facts.Pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{}
		p.Facts.Status.ContainerStatuses[0].Ready = false
		for i := range p.Facts.Status.Conditions {
			if c := &p.Facts.Status.Conditions[i]; c.Type == v1.PodReady || c.Type == v1.ContainersReady {
				c.Status, c.Reason = v1.ConditionFalse, "ContainersNotReady"
			}
		}
		p.Facts.Containers = map[string]explain.Container{"main": {Readiness: &podstatus.Probe{Failures: 14, Since: noon.Add(-140 * time.Second), Answer: "connection refused"}}}
	}))
	ended := noon.Add(-10 * time.Minute)
	old := view.PodHistory{Ref: history.Ref{UID: "uid-old", Namespace: "default", Name: "old"}, Created: noon.Add(-2 * time.Hour), Gone: &ended, Records: []view.Record{
		{Seq: 1, Observed: ended.Add(-time.Minute), Kind: "Phase", From: "Running", To: "Failed", Reason: "Evicted", Message: "the node was low on memory"},
	}}
	n.gone = []view.PodHistory{old}
	n.history["default/old"] = old
	n.history["default/loop"] = view.PodHistory{Ref: history.Ref{UID: "uid-loop", Namespace: "default", Name: "loop"}, Created: noon.Add(-time.Hour), Records: []view.Record{
		{Seq: 2, Observed: noon.Add(-2 * time.Minute), Kind: "Container", Container: "main", From: "running", To: "terminated", Reason: "Error", Message: "exit code 3"},
	}}
	n.history["/"] = view.PodHistory{Records: []view.Record{{Seq: 3, Observed: noon.Add(-time.Hour), Kind: "Node", To: "started"}}}
	return n
}

// sse is one server-sent event.
type sse struct{ id, kind, data string }

func parseEvents(text string) (events []sse) {
	for block := range strings.SplitSeq(text, "\n\n") {
		var e sse
		for line := range strings.SplitSeq(block, "\n") {
			switch field, value, _ := strings.Cut(line, ": "); field {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			}
		}
		if e.kind != "" {
			events = append(events, e)
		}
	}
	return events
}

func kinds(events []sse) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s ", cmp.Or(e.kind, "?"))
	}
	return strings.TrimSpace(b.String())
}

func newFuzzServer() (http.Handler, error) {
	options := queryapi.Options{Sources: view.Sources{Source: sampleNode(), Location: time.UTC}, Epoch: "e1"}
	observed(&options)
	s, err := queryapi.New(options)
	if err != nil {
		return nil, err
	}
	return s.Handler(), nil
}
