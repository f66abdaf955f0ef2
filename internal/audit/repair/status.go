package repair

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// writeStatus writes the status of a pod as the kubelet would for what the runtime has.
func (r *Repairer) writeStatus(ctx context.Context, s Step, f audit.Facts) (string, error) {
	if err := r.kubeletDead(s, f); err != nil {
		return "", err
	}
	pod, err := r.o.API.Get(ctx, s.Pod.Namespace, s.Pod.Name)
	switch {
	case err != nil:
		return "", fmt.Errorf("get pod: %w", err)
	case pod.UID != s.Pod.UID:
		return "", skip("the API has another pod of this name (UID %s)", pod.UID)
	case podstatus.IsMirror(pod):
		return "", skip("it is a mirror pod, which the kubelet alone writes")
	case podstatus.IsTerminal(pod.Status.Phase):
		return "", skip("the pod has ended (%s)", pod.Status.Phase)
	}
	status := Status(pod, f.Runtime, f.Now)
	patch, err := podrules.Ownership{}.PatchAt(pod.UID, pod.ResourceVersion, &pod.Status, &status)
	if err != nil {
		return "", fmt.Errorf("make patch: %w", err)
	}
	if patch == nil {
		return "", skip("the API says so already")
	}
	did := fmt.Sprintf("Wrote the status of the pod for the kubelet, which has been silent since %s: %s", f.KubeletAnswer.Silent.UTC().Format(time.RFC3339), summary(&status))
	if s.DryRun {
		return did, nil
	}
	if err := r.o.API.PatchStatus(ctx, pod.Namespace, pod.Name, patch); err != nil {
		return "", fmt.Errorf("patch status: %w", err)
	}
	return did, nil
}

// Status computes the status of a pod from the runtime's containers and the status in the API: ended
// containers with their exit codes, and the resulting phase and conditions. A terminal phase is kept,
// and none is set while a container could still run. It is pure.
func Status(pod *v1.Pod, runtime audit.Runtime, now time.Time) v1.PodStatus {
	facts := podstatus.Facts{IPs: ips(pod.Status.PodIPs), HostIPs: hostIPs(pod.Status.HostIPs)}
	couldRun := false
	for _, s := range runtime.Sandboxes {
		facts.Sandbox = facts.Sandbox || s.UID == pod.UID && s.Ready
	}
	scheme := idScheme(&pod.Status)
	for _, c := range runtime.Containers {
		if c.UID != pod.UID || podstatus.FindContainer(pod, c.Name) == nil {
			continue
		}
		couldRun = couldRun || c.State != audit.ContainerExited
		facts.Attempts = append(facts.Attempts, attempt(&c, scheme))
	}
	status := podstatus.Generate(pod, facts, pod.Status, now)
	keepRest(&pod.Status, status.InitContainerStatuses)
	keepRest(&pod.Status, status.ContainerStatuses)
	next := podrules.Next(pod, &pod.Status, &status, now)
	return podrules.Merge(pod, &pod.Status, &next, couldRun, now)
}

// keepRest takes from the API what the runtime's facts do not say: images, resources, mounts, users.
func keepRest(api *v1.PodStatus, statuses []v1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		before := podstatus.FindContainerStatus(api, s.Name)
		if before == nil {
			continue
		}
		kept := *before.DeepCopy()
		kept.State, kept.LastTerminationState = s.State, s.LastTerminationState
		kept.Ready, kept.Started, kept.RestartCount, kept.ContainerID = s.Ready, s.Started, s.RestartCount, s.ContainerID
		*s = kept
	}
}

func attempt(c *audit.Container, scheme string) podstatus.Attempt {
	a := podstatus.Attempt{Container: c.Name, ID: scheme + c.ID, Number: int(c.Attempt), StartedAt: c.Started}
	switch c.State {
	case audit.ContainerExited:
		a.State = podstatus.AttemptExited
		a.FinishedAt, a.ExitCode, a.Reason, a.Message = c.Finished, c.ExitCode, c.Reason, c.Message
	case audit.ContainerRunning:
		a.State = podstatus.AttemptRunning
	}
	return a
}

// idScheme is how IDs of this runtime begin in statuses, as the kubelet wrote them.
func idScheme(s *v1.PodStatus) string {
	for _, list := range [][]v1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses} {
		for i := range list {
			if name, _, found := strings.Cut(list[i].ContainerID, "://"); found {
				return name + "://"
			}
		}
	}
	return "containerd://"
}

func ips(list []v1.PodIP) []string {
	var all []string
	for _, ip := range list {
		all = append(all, ip.IP)
	}
	return all
}

func hostIPs(list []v1.HostIP) []string {
	var all []string
	for _, ip := range list {
		all = append(all, ip.IP)
	}
	return all
}

func summary(s *v1.PodStatus) string {
	text := "phase " + string(s.Phase)
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil {
				text += fmt.Sprintf(", container %q terminated with exit code %d", list[i].Name, t.ExitCode)
			}
		}
	}
	if ready := podstatus.FindCondition(s.Conditions, v1.PodReady); ready != nil {
		text += ", Ready " + string(ready.Status)
	}
	return text
}
