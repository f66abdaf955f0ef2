package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
)

// world is a fleet on a fake API server, in a synctest bubble.
type world struct {
	*testing.T
	api    *statustest.Server
	client kubernetes.Interface
	fleet  *Fleet
	stop   func()
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{T: t, api: statustest.New()}
	w.client = w.clientOf()
	o := Options{Client: w.client, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o)
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.fleet = f
	return w
}

func (w *world) clientOf() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(w.api.Config())
	if err != nil {
		w.Fatal(err)
	}
	return client
}

// run starts Run, which ends with the test.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- w.fleet.Run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.Errorf("Run: %v", err)
			}
		})
	}
	w.Cleanup(w.stop)
}

func reading() (node.Reading, error) {
	return node.Reading{Addresses: []string{"10.0.0.1"}, CPUs: 4, MemoryTotal: 1 << 33, MemoryAvailable: 1 << 32, DiskTotal: 1 << 33, DiskAvailable: 1 << 32, PIDs: 1 << 16}, nil
}

// add adds nodes with a simulated runtime.
func (w *world) add(names ...string) {
	w.Helper()
	for _, name := range names {
		if _, err := w.fleet.Add(NodeOptions{Options: node.Options{Name: name, Read: reading}, Handler: &simulated{manager: w.fleet.Manager()}}); err != nil {
			w.Fatal(err)
		}
	}
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("n%d", i))
	}
	return list
}

// bind creates a pod that is bound to a node.
func (w *world) bind(nodeName, name string) *v1.Pod {
	return w.api.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec:       v1.PodSpec{NodeName: nodeName, Containers: []v1.Container{{Name: "main", Image: "app"}}},
	})
}

// settle lets time pass, and all that happens in it.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func ready(pod *v1.Pod) bool {
	c := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady)
	return c != nil && c.Status == v1.ConditionTrue
}

// simulated runs each pod at once, and ends it when it is deleted.
type simulated struct{ manager *status.Manager }

func (s *simulated) SyncPod(_ context.Context, pod *v1.Pod) {
	if pod.DeletionTimestamp != nil {
		_, _ = s.manager.SetPodStatus(pod, statusOf(pod, false, true))
		_ = s.manager.TerminatePod(pod)
		return
	}
	if _, known := s.manager.GetPodStatus(pod.UID); !known {
		_, _ = s.manager.SetPodStatus(pod, statusOf(pod, true, false))
	}
}

func (*simulated) ForgetPod(context.Context, *v1.Pod) {}

// statusOf is the status of a pod that runs or has ended.
func statusOf(pod *v1.Pod, isReady, ended bool) v1.PodStatus {
	now := metav1.Now().Rfc3339Copy()
	s := v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.1.0.1", PodIPs: []v1.PodIP{{IP: "10.1.0.1"}}, StartTime: &now}
	for _, c := range pod.Spec.Containers {
		started := !ended
		state := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}}
		if ended {
			state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: "sim://" + string(pod.UID)}}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "sim://" + string(pod.UID), Ready: isReady && !ended, Started: &started, State: state,
		})
	}
	if ended {
		s.Phase = v1.PodSucceeded
	}
	is := v1.ConditionFalse
	if isReady && !ended {
		is = v1.ConditionTrue
	}
	for _, c := range []v1.PodConditionType{v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled} {
		status := v1.ConditionTrue
		if c == v1.PodReady || c == v1.ContainersReady {
			status = is
		}
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: c, Status: status, LastTransitionTime: now})
	}
	return s
}

// of returns the requests of a verb for a resource.
func (w *world) of(resource, verb string) (list []statustest.Request) {
	for _, r := range w.api.Requests() {
		if r.Resource == resource && r.Verb == verb {
			list = append(list, r)
		}
	}
	return list
}

// concerns reports whether a request is about a node: its Node, its lease, or a pod that is named NODE-NUMBER.
func concerns(r statustest.Request, name string) bool {
	return r.Resource == "nodes" && (r.Name == name || strings.Contains(r.Body, `"name":"`+name+`"`)) ||
		r.Resource == "leases" && strings.HasSuffix(r.Name, "/"+name) || r.Resource == "" && strings.HasPrefix(r.PodName(), name+"-")
}
