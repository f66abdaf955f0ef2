package main

import (
	"context"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// instantAPI is an API server that answers at once, so that what is measured is the
// manager. To a patch it answers with the pod as the manager wants it to be.
type instantAPI struct {
	// wants returns a copy of how the manager wants a pod to be.
	wants func(types.UID) *v1.PodStatus

	// mu guards what follows.
	mu      sync.Mutex
	patched func()
	pods    map[string]*v1.Pod // by name
	version int64
}

func newInstantAPI(pods []*v1.Pod) *instantAPI {
	api := &instantAPI{version: int64(len(pods))}
	api.reset(pods)
	return api
}

// reset makes it hold these pods and no others.
func (a *instantAPI) reset(pods []*v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = make(map[string]*v1.Pod, len(pods))
	for _, pod := range pods {
		a.pods[pod.Name] = pod
	}
}

func (a *instantAPI) pod(name string) *v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[name]
}

func (a *instantAPI) patch(name string) *v1.Pod {
	pod := *a.pod(name)
	pod.Status = *a.wants(pod.UID)
	a.mu.Lock()
	a.version++
	pod.ResourceVersion = strconv.FormatInt(a.version, 10)
	a.pods[name] = &pod
	patched := a.patched
	a.mu.Unlock()
	if patched != nil {
		patched()
	}
	return &pod
}

// tell has a function called with each patch from now on, before the patch is answered.
func (a *instantAPI) tell(patched func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.patched = patched
}

// List, Get, PatchStatus and Delete make it a client of statusd.

func (a *instantAPI) List(context.Context) ([]v1.Pod, error) { return nil, nil }

func (a *instantAPI) Get(_ context.Context, _, name string) (*v1.Pod, error) {
	return a.pod(name), nil
}

func (a *instantAPI) PatchStatus(_ context.Context, _, name string, _ []byte) (*v1.Pod, error) {
	return a.patch(name), nil
}

func (a *instantAPI) Delete(context.Context, string, string, types.UID) error { return nil }

// clientset makes it a client of the kubelet's manager, which uses no other methods.
func (a *instantAPI) clientset() kubernetes.Interface { return instantClientset{api: a} }

type instantClientset struct {
	kubernetes.Interface
	api *instantAPI
}

func (c instantClientset) CoreV1() corev1.CoreV1Interface { return instantCore{api: c.api} }

type instantCore struct {
	corev1.CoreV1Interface
	api *instantAPI
}

func (c instantCore) Pods(string) corev1.PodInterface { return instantPods{api: c.api} }

type instantPods struct {
	corev1.PodInterface
	api *instantAPI
}

func (p instantPods) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Pod, error) {
	return p.api.pod(name), nil
}

func (p instantPods) Patch(_ context.Context, name string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*v1.Pod, error) {
	return p.api.patch(name), nil
}

// newInstant makes the manager of a side, which knows all the pods, on an API that answers at once.
func newInstant(s side, pods []*v1.Pod) (manager, *instantAPI) {
	api := newInstantAPI(pods)
	var m manager
	if s == statusd {
		o := newOurs(api, limit{})
		api.wants = func(uid types.UID) *v1.PodStatus {
			status, _ := o.get(uid) // is a copy
			return &status
		}
		m = o
	} else {
		t := newTheirs(api.clientset())
		api.wants = func(uid types.UID) *v1.PodStatus {
			status, _ := t.get(uid)
			return status.DeepCopy()
		}
		m = t
	}
	for _, pod := range pods {
		m.know(pod)
	}
	return m, api
}
