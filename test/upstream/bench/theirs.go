package main

import (
	"context"
	"reflect"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"
)

// theirs is the kubelet's manager. Its log goes through klog at the default verbosity, as
// in the kubelet, but to nowhere.
type theirs struct {
	endings
	kubestatus.Manager
	pods    kubepod.Manager
	logger  klog.Logger
	started bool
}

func newTheirs(client kubernetes.Interface) *theirs {
	t := &theirs{pods: kubepod.NewBasicPodManager(), logger: klog.Background()}
	t.Manager = kubestatus.NewManager(client, t.pods, t, noLatency{})
	return t
}

// noLatency stands in for the kubelet's tracker of pod start-up times.
type noLatency struct{}

func (noLatency) RecordStatusUpdated(*v1.Pod)     {}
func (noLatency) DeletePodStartupState(types.UID) {}

func (t *theirs) PodCouldHaveRunningContainers(pod *v1.Pod) bool { return t.couldRun(pod) }

func (t *theirs) setPodStatus(pod *v1.Pod, status v1.PodStatus) {
	t.SetPodStatus(t.logger, pod, status)
}

func (t *theirs) setReadiness(uid types.UID, ready bool) {
	t.SetContainerReadiness(t.logger, uid, kubecontainer.ContainerID{Type: runtimeName, ID: containerID(uid)}, ready)
}

func (t *theirs) terminate(pod *v1.Pod) {
	t.note(pod.UID)
	t.TerminatePod(t.logger, pod)
}

func (t *theirs) get(uid types.UID) (v1.PodStatus, bool) { return t.GetPodStatus(uid) }

func (t *theirs) know(pod *v1.Pod)   { t.pods.UpdatePod(pod) }
func (t *theirs) forget(pod *v1.Pod) { t.pods.RemovePod(pod) }

func (t *theirs) start(ctx context.Context) {
	if !t.started {
		t.started = true
		t.Start(ctx)
	}
}

func (t *theirs) stop() {
	t.RemoveOrphanedStatuses(t.logger, nil)
	t.pods.SetPods(nil)
}

// sync is one pass of the kubelet's manager over its pods: all of them, or those with a
// change that it has not sent. sync must not be called once the manager is started.
func (t *theirs) sync(ctx context.Context, all bool) {
	syncBatch(reflect.ValueOf(t.Manager).UnsafePointer(), ctx, all)
}

// syncBatch is a method of the kubelet's manager that it does not export. The alternative
// would be to wait for its ticker of ten seconds, and to guess when a pass has ended. The
// file linkname.s lets the compiler accept a function without a body.
//
//go:linkname syncBatch k8s.io/kubernetes/pkg/kubelet/status.(*manager).syncBatch
func syncBatch(manager unsafe.Pointer, ctx context.Context, all bool) int
