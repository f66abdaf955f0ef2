package main

import (
	"context"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/test/upstream/podclient"
)

// instantAPI is an API server that answers at once, so that only the manager is measured. It
// answers a patch with the pod in the manager's desired state.
type instantAPI struct {
	// wants returns a copy of the manager's desired status of a pod.
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

// newInstant makes the manager of a side, which knows all the pods, on an API that answers at once.
func newInstant(s side, pods []*v1.Pod) (manager, *instantAPI) {
	api := newInstantAPI(pods)
	var m manager
	switch s {
	case statusd:
		m = newOurs(api, limit{})
	case recording:
		m = newRecorder(api)
	default:
		t := newTheirs(podclient.Clientset(api))
		api.wants = func(uid types.UID) *v1.PodStatus {
			status, _ := t.get(uid)
			return status.DeepCopy()
		}
		m = t
	}
	if api.wants == nil {
		api.wants = func(uid types.UID) *v1.PodStatus {
			status, _ := m.get(uid) // is a copy
			return &status
		}
	}
	for _, pod := range pods {
		m.know(pod)
	}
	return m, api
}
