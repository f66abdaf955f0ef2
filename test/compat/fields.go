package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
)

const (
	// probed is how long requests are counted.
	probed = 3 * time.Minute
	// reported is the time between two reports of the same status.
	reported = 100 * time.Millisecond
	// within is how soon a server must have a status, on a busy machine too.
	within = 5 * time.Minute
)

// fieldsResult is what becomes of a status with all fields that a node writes.
type fieldsResult struct {
	// Dropped are the fields that the server stores otherwise, or not at all; Refused the fields that the server refuses.
	Dropped, Refused []string
	Requests         int64
	Fights           int
}

const (
	fieldsNode = "fields"
	device     = "example.com/device"
)

// tryFields reports a status with all fields, and the same again and again.
func tryFields(ctx context.Context, process *controlplane.Process, admin kubernetes.Interface) (result fieldsResult, err error) {
	if _, err := admin.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fieldsNode}}, metav1.CreateOptions{}); err != nil {
		return result, err
	}
	pod, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, podWithFields(), metav1.CreateOptions{})
	if err != nil {
		return result, err
	}
	config, err := process.NodeConfig(fieldsNode)
	if err != nil {
		return result, err
	}
	var requests atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &requests} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return result, err
	}
	manager, err := status.New(status.Options{Client: status.NewClient(client.CoreV1(), fieldsNode)})
	if err != nil {
		return result, err
	}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "", fields.OneTermEqualSelector("spec.nodeName", fieldsNode)), &v1.Pod{}, 0)
	if _, err := informer.AddEventHandler(manager.EventHandler()); err != nil {
		return result, err
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go informer.RunWithContext(running)
	go func() { done <- manager.Run(running) }()
	defer func() { stop(); err = errors.Join(err, <-done) }()

	want := allFields(pod)
	if err := report(manager, pod, want); err != nil {
		return result, err
	}
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = campaign.Await(waiting, 100*time.Millisecond, func() error {
		stored, err := admin.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && stored.Status.Message != want.Message {
			err = fmt.Errorf("the server has the message %q, want %q; pending are %+v", stored.Status.Message, want.Message, manager.Pending())
		}
		return err
	})
	if err != nil {
		return result, err
	}
	before := requests.Load()
	for end := time.Now().Add(probed); time.Now().Before(end); {
		if err := errors.Join(report(manager, pod, want), campaign.Pause(ctx, reported)); err != nil {
			return result, err
		}
	}
	result.Requests, result.Fights = requests.Load()-before, len(manager.Fights())
	for _, pending := range manager.Pending() {
		result.Refused = append(result.Refused, pending.Refused...)
	}
	stored, err := admin.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return result, err
	}
	result.Dropped, err = differences(want, stored.Status)
	result.Dropped = slices.DeleteFunc(result.Dropped, func(field string) bool { return slices.Contains(result.Refused, "status."+field) })
	return result, err
}

// report reports a status. A warning means that the report was taken.
func report(manager *status.Manager, pod *v1.Pod, s v1.PodStatus) error {
	if _, err := manager.SetPodStatus(pod, s); err != nil && !status.IsWarning(err) {
		return err
	}
	return nil
}

// counting counts the requests about single pods.
type counting struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/pods/") {
		c.count.Add(1)
	}
	return c.next.RoundTrip(r)
}

func podWithFields() *v1.Pod {
	always, no, grace := v1.ContainerRestartPolicyAlways, false, int64(1)
	quantities := v1.ResourceRequirements{Requests: amounts("100m", "64Mi"), Limits: amounts("200m", "128Mi")}
	withDevice := *quantities.DeepCopy()
	withDevice.Requests[device], withDevice.Limits[device] = resource.MustParse("1"), resource.MustParse("1")
	stop := v1.SIGUSR1
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "fields", Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{
			NodeName: fieldsNode, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace, OS: &v1.PodOS{Name: v1.Linux},
			Resources:      &quantities,
			InitContainers: []v1.Container{{Name: "sidecar", Image: "example.com/sidecar:1", RestartPolicy: &always}},
			Containers: []v1.Container{{
				Name: "main", Image: "example.com/main:1", Resources: withDevice, Lifecycle: &v1.Lifecycle{StopSignal: &stop},
				VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data", ReadOnly: true}},
			}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "example.com/data:1"}}}},
		},
	}
}

func amounts(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
}

// allFields is a status with all fields that a node writes.
func allFields(pod *v1.Pod) v1.PodStatus {
	now := metav1.Now().Rfc3339Copy()
	started, recursive, message, stop := true, v1.RecursiveReadOnlyEnabled, "well", v1.SIGUSR1
	quantities := v1.ResourceRequirements{Requests: amounts("100m", "64Mi"), Limits: amounts("200m", "128Mi")}
	container := func(name string) v1.ContainerStatus {
		return v1.ContainerStatus{
			Name: name, Image: "example.com/" + name + ":1", ImageID: "example.com/" + name + "@sha256:1", ContainerID: "process://" + name, Ready: true, Started: &started, RestartCount: 1,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
			LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
				ExitCode: 3, Reason: "Error", Message: "why", StartedAt: now, FinishedAt: now, ContainerID: "process://before-" + name}},
			User: &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 1000, GID: 1000, SupplementalGroups: []int64{1000}}},
		}
	}
	main := container("main")
	main.AllocatedResources, main.Resources, main.StopSignal = quantities.Requests, &quantities, &stop
	main.VolumeMounts = []v1.VolumeMountStatus{{Name: "data", MountPath: "/data", ReadOnly: true, RecursiveReadOnly: &recursive,
		VolumeStatus: &v1.VolumeStatus{Image: &v1.ImageVolumeStatus{ImageRef: "example.com/data@sha256:1"}}}}
	main.AllocatedResourcesStatus = []v1.ResourceStatus{{Name: device, Resources: []v1.ResourceHealth{{ResourceID: "1", Health: v1.ResourceHealthStatusHealthy, Message: &message}}}}
	s := v1.PodStatus{
		ObservedGeneration: pod.Generation, Phase: v1.PodRunning, Message: "all fields", Reason: "AllFields", StartTime: &now, QOSClass: v1.PodQOSBurstable,
		HostIP: "127.0.0.1", HostIPs: []v1.HostIP{{IP: "127.0.0.1"}}, PodIP: "10.1.2.3", PodIPs: []v1.PodIP{{IP: "10.1.2.3"}, {IP: "fd00::1"}},
		InitContainerStatuses: []v1.ContainerStatus{container("sidecar")}, ContainerStatuses: []v1.ContainerStatus{main},
		AllocatedResources: quantities.Requests, Resources: &quantities,
	}
	for _, kind := range []v1.PodConditionType{v1.PodScheduled, v1.PodReadyToStartContainers, v1.PodInitialized, v1.ContainersReady, v1.PodReady} {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: kind, Status: v1.ConditionTrue, LastTransitionTime: now, ObservedGeneration: pod.Generation})
	}
	return s
}

// differences are the fields of a status that another status lacks or has otherwise. Elements of lists are not numbered.
func differences(want, got v1.PodStatus) ([]string, error) {
	var a, b any
	for _, side := range []struct {
		from v1.PodStatus
		to   *any
	}{{want, &a}, {got, &b}} {
		text, err := json.Marshal(side.from)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, side.to); err != nil {
			return nil, err
		}
	}
	found := map[string]bool{}
	differ("", a, b, found)
	var all []string
	for path := range found {
		all = append(all, path)
	}
	slices.Sort(all)
	return all, nil
}

// differ adds the paths in which a value has what another lacks.
func differ(path string, want, got any, found map[string]bool) {
	switch want := want.(type) {
	case map[string]any:
		other, ok := got.(map[string]any)
		if !ok {
			found[path] = true
			return
		}
		for name, value := range want {
			// A transition time is the server's if its condition was there before.
			if value != nil && name != "lastTransitionTime" {
				differ(strings.TrimPrefix(path+"."+name, "."), value, other[name], found)
			}
		}
	case []any:
		other, ok := got.([]any)
		if !ok || len(other) < len(want) {
			found[path] = true
			return
		}
		for i := range want {
			differ(path, want[i], other[i], found)
		}
	default:
		if !reflect.DeepEqual(want, got) {
			found[path] = true
		}
	}
}
