//go:build real

package status_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) {
	if runAsAgent() {
		return
	}
	shared.Main(m)
}

// patience bounds the wait for something that is to come; it is not a speed that is tested.
const patience = 10 * time.Minute

// node is a node agent on a real API server: a manager as the node's own user, a table of
// pods, and a watch that feeds both.
type node struct {
	*testing.T
	server   *controlplanetest.Server
	name     string
	client   kubernetes.Interface
	table    *pods.Table
	manager  *status.Manager
	requests *requestCounter
	stop     func()
}

// startNode starts an agent whose manager and watch end with the test.
func startNode(t *testing.T, server *controlplanetest.Server, name string, change ...func(*status.Options)) *node {
	t.Helper()
	config := server.NodeConfig(t, name)
	counter := &requestCounter{}
	config.Wrap(counter.wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{T: t, server: server, name: name, client: client, table: pods.New(), requests: counter}
	options := status.Options{Client: status.NewClient(client.CoreV1(), name), Pods: n.table}
	for _, c := range change {
		c(&options)
	}
	if n.manager, err = status.New(options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	informer := n.watch()
	wg.Go(func() { informer.Run(ctx.Done()) })
	wg.Go(func() {
		if err := n.manager.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	n.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(n.stop)
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the watch did not begin")
	}
	return n
}

// watch feeds the table and then the manager with the pods bound to the node.
func (n *node) watch() cache.Controller {
	selector := fields.OneTermEqualSelector("spec.nodeName", n.name)
	lw := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, selector)
	observe := func(object any) {
		pod := object.(*v1.Pod)
		n.table.Set(pod)
		n.manager.ObservePod(pod)
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw,
		ObjectType:    &v1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    observe,
			UpdateFunc: func(_, object any) { observe(object) },
			DeleteFunc: func(object any) {
				if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
					object = tombstone.Obj
				}
				n.table.Remove(object.(*v1.Pod))
			},
		},
	})
	return informer
}

// requestCounter counts the requests that are not lists or watches.
type requestCounter struct{ writes, reads atomic.Int64 }

func (c *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		switch {
		case request.Method != http.MethodGet:
			c.writes.Add(1)
		case strings.Contains(request.URL.Path, "/pods/"):
			c.reads.Add(1)
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (n *node) create(namespace, name string, edits ...func(*v1.Pod)) *v1.Pod {
	n.Helper()
	pod := controlplanetest.Pod(namespace, name, n.name)
	for _, edit := range edits {
		edit(pod)
	}
	created := n.server.CreatePod(n, pod)
	n.awaitTable(created)
	return created
}

// awaitTable waits until the watch has brought the pod.
func (n *node) awaitTable(pod *v1.Pod) {
	n.Helper()
	n.until(pod.Name+" to be known on the node", func() bool {
		_, ok := n.table.ByUID(pod.UID)
		return ok || n.table.TranslateUID(pod.UID) != pod.UID // a mirror
	})
}

// awaitSeen waits until the node's own watch has brought the pod as wanted. The watch of another client may be ahead of it.
func (n *node) awaitSeen(pod *v1.Pod, want string, is func(*v1.Pod) bool) (seen *v1.Pod) {
	n.Helper()
	n.until(pod.Name+" to be seen "+want, func() bool {
		known, ok := n.table.ByUID(pod.UID)
		seen = known
		return ok && is(known)
	})
	return seen
}

// until waits for something to happen in this process or at the server.
func (n *node) until(want string, is func() bool) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), patience)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			n.Fatalf("waited for %s; pending: %+v", want, n.manager.Pending())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// await waits until the API's pod is as wanted, looking at every version of it.
func (n *node) await(namespace, name, want string, is func(*v1.Pod) bool) *v1.Pod {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), patience)
	defer cancel()
	lw := cache.NewListWatchFromClient(n.server.Admin().CoreV1().RESTClient(), "pods", namespace, fields.OneTermEqualSelector("metadata.name", name))
	for {
		// A version that is not as wanted yet may be the last for a while: look again each second.
		step, cancel := context.WithTimeout(ctx, time.Second)
		event, err := watchtools.UntilWithSync(step, lw, &v1.Pod{}, nil, func(e watch.Event) (bool, error) {
			return is(e.Object.(*v1.Pod)), nil
		})
		cancel()
		if err == nil {
			return event.Object.(*v1.Pod)
		}
		if ctx.Err() != nil {
			n.Fatalf("pod %s/%s did not become %s; it is %+v; pending: %+v", namespace, name, want, n.server.GetPod(n, namespace, name).Status, n.manager.Pending())
		}
	}
}

func (n *node) flush() {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), patience)
	defer cancel()
	if err := n.manager.Flush(ctx); err != nil {
		n.Fatal(err)
	}
}

func (n *node) set(pod *v1.Pod, s v1.PodStatus) {
	n.Helper()
	if _, err := n.manager.SetPodStatus(pod, s); err != nil {
		n.Fatal(err)
	}
}

func containerID(pod *v1.Pod) string { return fmt.Sprintf("process://%s", pod.UID) }

func runningStatus(pod *v1.Pod, ready bool) v1.PodStatus {
	started := true
	return conditions(pod, v1.PodStatus{
		Phase:  v1.PodRunning,
		HostIP: "127.0.0.1", HostIPs: []v1.HostIP{{IP: "127.0.0.1"}},
		PodIP: "10.1.2.3", PodIPs: []v1.PodIP{{IP: "10.1.2.3"}},
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", Image: "example.com/main:1", ContainerID: containerID(pod), Ready: ready, Started: &started,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}},
	})
}

func endedStatus(pod *v1.Pod, exitCode int32) v1.PodStatus {
	s := v1.PodStatus{Phase: v1.PodSucceeded, ContainerStatuses: []v1.ContainerStatus{{
		Name: "main", Image: "example.com/main:1", ContainerID: containerID(pod),
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: exitCode, Reason: "Completed", ContainerID: containerID(pod), FinishedAt: metav1.Now()}},
	}}}
	if exitCode != 0 {
		s.Phase, s.ContainerStatuses[0].State.Terminated.Reason = v1.PodFailed, "Error"
	}
	return conditions(pod, s)
}

func conditions(pod *v1.Pod, s v1.PodStatus) v1.PodStatus {
	s.Conditions = []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
		{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue},
		podstatus.Initialized(pod, &pod.Status, s.ContainerStatuses, s.Phase),
		podstatus.Ready(pod, pod.Status.Conditions, s.ContainerStatuses, s.Phase),
		podstatus.ContainersReady(pod, s.ContainerStatuses, s.Phase),
	}
	return s
}

func conditionOf(pod *v1.Pod, t v1.PodConditionType) v1.ConditionStatus {
	if c := podstatus.FindCondition(pod.Status.Conditions, t); c != nil {
		return c.Status
	}
	return ""
}
