package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/node/fleet"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime/function"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
	"github.com/statusd/statusd/virtualkubelet"
)

// cluster is an API server in memory, behind a real connection.
func cluster(t *testing.T) (*statustest.Server, *rest.Config) {
	server := statustest.New()
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	return server, &rest.Config{Host: web.URL}
}

// start runs a part until the test ends.
func start(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// ordinary is a pod as a ReplicaSet makes it of a Deployment, bound to a node: with the token of its service account, ports, limits and
// the downward API.
func ordinary(name, nodeName string) *v1.Pod {
	limits := v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m"), v1.ResourceMemory: resource.MustParse("16Mi")}
	controller := true
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Generation: 1, Labels: map[string]string{"app": "web", "pod-template-hash": "5d9c8b7f6"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d9c8b7f6", UID: "rs", Controller: &controller}},
		},
		Spec: v1.PodSpec{
			NodeName: nodeName, RestartPolicy: v1.RestartPolicyAlways, ServiceAccountName: "default",
			Containers: []v1.Container{{
				Name: "main", Image: "registry.example/web:1.0", ImagePullPolicy: v1.PullIfNotPresent, Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Env:          []v1.EnvVar{{Name: "POD", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
				Resources:    v1.ResourceRequirements{Requests: limits, Limits: limits},
				VolumeMounts: []v1.VolumeMount{{Name: "kube-api-access-x", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
			}},
			Volumes: []v1.Volume{{Name: "kube-api-access-x", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
				{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
			}}}}},
			Tolerations: []v1.Toleration{{Operator: v1.TolerationOpExists}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

// live has the pods of a Deployment become ready on the nodes, and then deletes them.
func live(t *testing.T, server *statustest.Server, nodes ...string) {
	var pods []*v1.Pod
	for _, name := range nodes {
		for i := range 3 {
			pods = append(pods, server.Put(ordinary(fmt.Sprintf("web-%s-%d", name, i), name)))
		}
	}
	until(t, "all pods are ready", func() error {
		for _, pod := range pods {
			c := podstatus.FindCondition(server.Pod(pod).Status.Conditions, v1.PodReady)
			if c == nil || c.Status != v1.ConditionTrue {
				return fmt.Errorf("%s: %+v", pod.Name, server.Pod(pod).Status)
			}
		}
		return nil
	})
	for _, pod := range pods {
		server.DeleteGracefully(pod.Namespace, pod.Name, 3600)
	}
	until(t, "all pods are gone", func() error {
		if left := server.Pods(); len(left) > 0 {
			return fmt.Errorf("%d are left: %+v", len(left), left[0].Status)
		}
		return nil
	})
}

func until(t *testing.T, want string, is func() error) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	over := time.After(2 * time.Minute)
	for {
		err := is()
		if err == nil {
			return
		}
		select {
		case <-look.C:
		case <-over:
			t.Fatalf("not so in time: %s: %v", want, err)
		}
	}
}

func TestNodeWithItsOwnRuntime(t *testing.T) {
	server, config := cluster(t)
	rt, err := function.New(function.Options{Run: func(ctx context.Context, _ function.Call) error { <-ctx.Done(); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	settings := agent.Embedded("own")
	settings.StateDir, settings.Eviction.Hard = t.TempDir(), map[string]string{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "pid.available": "0%"}
	own, err := agent.New(settings, agent.Options{Runtime: rt, RESTConfig: config})
	if err != nil {
		t.Fatal(err)
	}
	start(t, own.Run)
	live(t, server, "own")
}

func TestNodeOfAProvider(t *testing.T) {
	server, config := cluster(t)
	client, _, err := fleet.Clients(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{pods: map[string]*v1.Pod{}}
	start(t, func(ctx context.Context) error {
		return virtualkubelet.Run(ctx, virtualkubelet.Options{Client: client, NodeName: "cloud", Provider: p, PollInterval: 100 * time.Millisecond})
	})
	live(t, server, "cloud")
}

func TestNodesOfAFleet(t *testing.T) {
	server, config := cluster(t)
	client, leases, err := fleet.Clients(config)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(fleet.Options{Client: client, Leases: leases})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("rack-", i))
		if _, err := f.Add(fleet.NodeOptions{Options: node.Options{Name: names[i]}, Handler: racks{f.Manager()}}); err != nil {
			t.Fatal(err)
		}
	}
	start(t, f.Run)
	live(t, server, names...)
}

// racks runs the pods of a node in name only.
type racks struct{ manager *status.Manager }

func (r racks) SyncPod(_ context.Context, pod *v1.Pod) {
	deleted := pod.DeletionTimestamp != nil
	attempt := podstatus.Attempt{Container: "main", ID: "rack://" + string(pod.UID), State: podstatus.AttemptRunning, StartedAt: time.Now()}
	if deleted {
		attempt.State, attempt.FinishedAt = podstatus.AttemptExited, time.Now()
	}
	facts := podstatus.Facts{Sandbox: !deleted, Ended: deleted, IPs: []string{"192.0.2.1"}, Attempts: []podstatus.Attempt{attempt}}
	if _, known := r.manager.GetPodStatus(pod.UID); !known || deleted {
		_, _ = r.manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now()))
	}
	if deleted {
		_ = r.manager.TerminatePod(pod)
	}
}

func (racks) ForgetPod(context.Context, *v1.Pod) {}

// provider is a provider that must be asked.
type provider struct {
	mu   sync.Mutex // guards pods
	pods map[string]*v1.Pod
}

var errNone = missing{errors.New("no such pod")}

type missing struct{ error }

func (missing) NotFound() bool { return true }

func (p *provider) CreatePod(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "main", Ready: true, State: v1.ContainerState{
		Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()},
	}}}}
	p.pods[pod.Namespace+"/"+pod.Name] = pod
	return nil
}

func (p *provider) UpdatePod(context.Context, *v1.Pod) error { return nil }

func (p *provider) DeletePod(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, pod.Namespace+"/"+pod.Name)
	return nil
}

func (p *provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod := p.pods[namespace+"/"+name]; pod != nil {
		return pod, nil
	}
	return nil, errNone
}

func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

func (p *provider) GetPods(context.Context) (pods []*v1.Pod, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range p.pods {
		pods = append(pods, pod)
	}
	return pods, nil
}
