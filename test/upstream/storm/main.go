// Command storm is the kubelet's status manager as the agent of test/robustness: the same traffic and the same faults as for statusd's.
//
//	make robustness-kubelet
//
// The kubelet's manager keeps nothing beyond its process, so the campaign reports each end again to the next process, as a kubelet that reads its
// containers does. Undelivered statuses are not listed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusd/statusd/test/robustness/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o, err := agent.Arguments(os.Args[1:])
	if err == nil {
		err = agent.Serve(ctx, o, os.Stdin, os.Stdout, func(client kubernetes.Interface, _ func()) (agent.Manager, error) { return newKubelet(client), nil })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

// kubelet is the kubelet's manager on the kubelet's table of pods.
type kubelet struct {
	kubestatus.Manager
	pods    kubepod.Manager
	running sync.Map // UIDs of pods whose containers run
}

func newKubelet(client kubernetes.Interface) *kubelet {
	k := &kubelet{pods: kubepod.NewBasicPodManager()}
	k.Manager = kubestatus.NewManager(client, k.pods, k, noLatency{})
	return k
}

// PodCouldHaveRunningContainers is what the kubelet's pod workers say.
func (k *kubelet) PodCouldHaveRunningContainers(pod *v1.Pod) bool {
	_, runs := k.running.Load(pod.UID)
	return runs
}

func (k *kubelet) ObservePod(pod *v1.Pod) { k.pods.UpdatePod(pod) }

func (k *kubelet) ObserveDelete(pod *v1.Pod) {
	k.pods.RemovePod(pod)
	k.running.Delete(pod.UID)
	left := map[types.UID]bool{}
	for _, p := range k.pods.GetPods() {
		left[p.UID] = true
	}
	k.RemoveOrphanedStatuses(klog.Background(), left)
}

func (k *kubelet) SetPodStatus(pod *v1.Pod, s v1.PodStatus) error {
	for _, c := range s.ContainerStatuses {
		if c.State.Running != nil {
			k.running.Store(pod.UID, true)
		} else {
			k.running.Delete(pod.UID)
		}
	}
	k.Manager.SetPodStatus(klog.Background(), pod, s)
	return agent.ErrNotDurable
}

func (k *kubelet) SetContainerReadiness(pod *v1.Pod, containerID string, ready bool) error {
	k.Manager.SetContainerReadiness(klog.Background(), pod.UID, kubecontainer.ParseContainerID(containerID), ready)
	return nil
}

func (k *kubelet) TerminatePod(pod *v1.Pod) error {
	k.running.Delete(pod.UID)
	k.Manager.TerminatePod(klog.Background(), pod)
	return nil
}

func (k *kubelet) Run(ctx context.Context) error {
	k.Start(ctx)
	<-ctx.Done()
	return nil
}

// noLatency stands in for the kubelet's tracker of start-up times.
type noLatency struct{}

func (noLatency) RecordStatusUpdated(*v1.Pod)     {}
func (noLatency) DeletePodStartupState(types.UID) {}
