package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mock is a provider of the shape of virtual-kubelet's mock: it runs nothing, keeps pods in a map and in a file, which stands
// for a cloud that outlives this process, and notifies of changes. It reports no container IDs, and sets phases by hand.
type mock struct {
	file string

	mu     sync.Mutex // guards what follows
	pods   map[string]*v1.Pod
	notify func(*v1.Pod)
}

func newMock(file string) (*mock, error) {
	m := &mock{file: file, pods: map[string]*v1.Pod{}, notify: func(*v1.Pod) {}}
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &m.pods)
	}
	return m, err
}

// save needs mu.
func (m *mock) save() error {
	content, err := json.Marshal(m.pods)
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(m.file+".new", m.file)
}

// CreatePod starts a pod. One with the annotation example.com/exit ends a moment later, with that phase.
func (m *mock) CreatePod(_ context.Context, pod *v1.Pod) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := metav1.Now()
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, HostIP: "1.2.3.4", PodIP: "5.6.7.8", StartTime: &now, Conditions: []v1.PodCondition{
		{Type: v1.PodInitialized, Status: v1.ConditionTrue}, {Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: v1.PodScheduled, Status: v1.ConditionTrue},
	}}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
		})
	}
	m.pods[pod.Namespace+"/"+pod.Name] = pod
	m.notify(pod)
	if phase := pod.Annotations["example.com/exit"]; phase != "" {
		time.AfterFunc(300*time.Millisecond, func() { m.finish(pod, v1.PodPhase(phase)) })
	}
	return m.save()
}

// finish ends a pod with a phase, if it is still there.
func (m *mock) finish(pod *v1.Pod, phase v1.PodPhase) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[pod.Namespace+"/"+pod.Name] == pod {
		end(pod, phase)
		m.notify(pod)
		if err := m.save(); err != nil {
			log.Print(err)
		}
	}
}

func end(pod *v1.Pod, phase v1.PodPhase) {
	pod.Status.Phase = phase
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		c.Ready = false
		c.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "MockProviderEnded", FinishedAt: metav1.Now()}}
		if phase == v1.PodFailed {
			c.State.Terminated.ExitCode = 1
		}
	}
}

// UpdatePod changes nothing that the mock looks at.
func (m *mock) UpdatePod(context.Context, *v1.Pod) error { return nil }

// DeletePod ends a pod, notifies of its end and forgets it.
func (m *mock) DeletePod(_ context.Context, pod *v1.Pod) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.pods[pod.Namespace+"/"+pod.Name]
	if known == nil {
		return notFound(pod.Name)
	}
	end(known, v1.PodSucceeded)
	m.notify(known)
	delete(m.pods, pod.Namespace+"/"+pod.Name)
	return m.save()
}

// GetPod returns a pod.
func (m *mock) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pod := m.pods[namespace+"/"+name]; pod != nil {
		return pod.DeepCopy(), nil
	}
	return nil, notFound(name)
}

// GetPodStatus returns the status of a pod.
func (m *mock) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := m.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods.
func (m *mock) GetPods(context.Context) ([]*v1.Pod, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*v1.Pod
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		all = append(all, m.pods[name].DeepCopy())
	}
	return all, nil
}

// NotifyPods keeps the callback.
func (m *mock) NotifyPods(_ context.Context, notify func(*v1.Pod)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notify = notify
}

// notFound is an error of the kind of virtual-kubelet's errdefs.
type notFound string

func (n notFound) Error() string {
	return fmt.Sprintf("pod %q is not known to the provider", string(n))
}
func (notFound) NotFound() bool { return true }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
