package oracle

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"
)

// kubelet is the kubelet's status manager, unchanged, on top of the kubelet's pod manager, with
// corrections between the two, see Corrections.
type kubelet struct {
	api     *Server
	pods    *correctedPods
	manager kubestatus.Manager
	workers safety
	tally   tally
}

func newKubelet(s safety) *kubelet {
	k := &kubelet{api: newServer(), pods: &correctedPods{Manager: kubepod.NewBasicPodManager()}, workers: s}
	k.manager = kubestatus.NewManager(clientset{kubelet: k}, k.pods, safety(k.couldRun), noLatency{})
	k.pods.hasStatus = func(uid types.UID) bool {
		_, ok := k.manager.GetPodStatus(uid)
		return ok
	}
	return k
}

func (k *kubelet) server() *Server { return k.api }

func (k *kubelet) start() {
	k.manager.Start(klog.NewContext(context.Background(), logr.Discard()))
}

// stop takes effect at the next pass, 10 s from now at the latest.
func (k *kubelet) stop() { k.pods.stopped.Store(true) }

func (k *kubelet) setPod(pod *v1.Pod)    { k.pods.UpdatePod(pod) }
func (k *kubelet) removePod(pod *v1.Pod) { k.pods.RemovePod(pod) }

func (k *kubelet) known(uid types.UID) (*v1.Pod, bool) { return k.pods.GetPodByUID(uid) }

func (k *kubelet) report(pod *v1.Pod, status v1.PodStatus) bool {
	_, changed := k.manager.SetPodStatus(logr.Discard(), pod, status)
	return changed
}

func (k *kubelet) ready(uid types.UID, containerID string, ready bool) {
	k.manager.SetContainerReadiness(logr.Discard(), uid, parseContainerID(containerID), ready)
}

func (k *kubelet) started(uid types.UID, containerID string, started bool) {
	k.manager.SetContainerStartup(logr.Discard(), uid, parseContainerID(containerID), started)
}

func parseContainerID(id string) kubecontainer.ContainerID {
	kind, id, _ := strings.Cut(id, "://")
	return kubecontainer.ContainerID{Type: kind, ID: id}
}

func (k *kubelet) terminate(pod *v1.Pod) { k.manager.TerminatePod(logr.Discard(), pod) }

func (k *kubelet) removeOrphans(keep map[types.UID]bool) {
	k.manager.RemoveOrphanedStatuses(logr.Discard(), keep)
}

func (k *kubelet) cached(uid types.UID) (*v1.PodStatus, bool) {
	status, ok := k.manager.GetPodStatus(uid)
	if !ok {
		return nil, false
	}
	return status.DeepCopy(), true // what it hands out is its own
}

func (k *kubelet) resizePending(uid types.UID, reason, message string, generation int64) bool {
	return k.manager.SetPodResizePendingCondition(uid, reason, message, generation)
}

func (k *kubelet) resizeInProgress(uid types.UID, reason, message string, generation int64) (int64, bool) {
	return k.manager.SetPodResizeInProgressCondition(uid, reason, message, generation)
}

func (k *kubelet) clearResizePending(uid types.UID) { k.manager.ClearPodResizePendingCondition(uid) }

func (k *kubelet) clearResizeInProgress(uid types.UID) (int64, bool) {
	return k.manager.ClearPodResizeInProgressCondition(uid)
}

func (k *kubelet) resizeConditions(uid types.UID) []v1.PodCondition {
	var list []v1.PodCondition
	for _, c := range k.manager.GetPodResizeConditions(uid) {
		list = append(list, *c)
	}
	return list
}

// noLatency stands for the kubelet's tracker of start-up times, which is not compared.
type noLatency struct{}

func (noLatency) RecordStatusUpdated(*v1.Pod)     {}
func (noLatency) DeletePodStartupState(types.UID) {}

// clientset is a Kubernetes client that implements only three requests about pods. Any other use is
// a nil pointer, so that it cannot go unnoticed.
type clientset struct {
	kubernetes.Interface
	kubelet *kubelet
}

func (c clientset) CoreV1() corev1.CoreV1Interface { return coreClient{kubelet: c.kubelet} }

type coreClient struct {
	corev1.CoreV1Interface
	kubelet *kubelet
}

func (c coreClient) Pods(string) corev1.PodInterface { return podClient{kubelet: c.kubelet} }

type podClient struct {
	corev1.PodInterface
	kubelet *kubelet
}

func (c podClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Pod, error) {
	pod, err := c.kubelet.api.Get(name)
	if err == nil && c.kubelet.pods.isUnknownMirror(pod) {
		c.kubelet.tally.count(correctS11)
		return nil, apierrors.NewNotFound(podResource, name)
	}
	if err == nil && c.kubelet.showsEarlierLife(pod) {
		c.kubelet.tally.count(correctM0d)
		pod.Status.Phase = "ended in another life" // a phase that no report has, so that it is written over
	}
	return pod, err
}

func (c podClient) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*v1.Pod, error) {
	return c.kubelet.api.PatchStatus(name, patch, c.kubelet.amend)
}

func (c podClient) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	return c.kubelet.api.Delete(name, *options.Preconditions.UID)
}
