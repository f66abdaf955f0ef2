package oracle

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/statusd/statusd/rival/podclient"
)

// kubelet is the kubelet's status manager, unchanged, on top of the kubelet's pod manager.
type kubelet struct {
	api     *Server
	pods    *stoppablePods
	manager kubestatus.Manager
}

func newKubelet(s safety) *kubelet {
	k := &kubelet{api: newServer(), pods: &stoppablePods{Manager: kubepod.NewBasicPodManager()}}
	k.manager = kubestatus.NewManager(podclient.Clientset(statusdClient{k.api}), k.pods, s, noLatency{})
	return k
}

// stoppablePods ends the goroutine of the kubelet's manager. That goroutine loops for ever
// and takes no context, which a synctest bubble waits for in vain. Each of its passes begins
// with this question, before any lock is taken, so here it can be made to leave in order:
// runtime.Goexit runs its deferred calls and nothing of the manager is left half done.
type stoppablePods struct {
	kubepod.Manager
	stopped atomic.Bool
}

func (p *stoppablePods) GetUIDTranslations() (map[kubetypes.ResolvedPodUID]kubetypes.MirrorPodUID, map[kubetypes.MirrorPodUID]kubetypes.ResolvedPodUID) {
	if p.stopped.Load() {
		runtime.Goexit()
	}
	return p.Manager.GetUIDTranslations()
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

func (k *kubelet) backfillResize(pods []*v1.Pod) { k.manager.BackfillPodResizeConditions(pods) }

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
