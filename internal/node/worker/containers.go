package worker

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// history are the starts of one container that the runtime remembers, the newest first.
type history []runtime.Container

// attemptsOf picks the attempts of one container. They are listed together and in order.
func attemptsOf(all []runtime.Container, name string) history {
	first := slices.IndexFunc(all, func(c runtime.Container) bool { return c.Name == name })
	if first < 0 {
		return nil
	}
	end := first
	for end < len(all) && all[end].Name == name {
		end++
	}
	return history(all[first:end:end])
}

// newest is the last start, or nil.
func (h history) newest() *runtime.Container {
	if len(h) == 0 {
		return nil
	}
	return &h[0]
}

// alive reports whether something of the container could run.
func alive(c *runtime.Container) bool { return c != nil && c.State != runtime.Exited }

// allAlive lists the containers that could still run.
func allAlive(all []runtime.Container) []runtime.Container {
	return slices.DeleteFunc(slices.Clone(all), func(c runtime.Container) bool { return !alive(&c) })
}

// isRegular reports whether the container is one of the pod's regular ones.
func isRegular(pod *v1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == name })
}

// specOf returns the container of any kind with this name, or nil.
func specOf(pod *v1.Pod, name string) *v1.Container {
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i].EphemeralContainerCommon; c.Name == name {
			return (*v1.Container)(c)
		}
	}
	return podstatus.FindContainer(pod, name)
}

// ofThisSandbox are the containers that were started since the machine was.
func ofThisSandbox(containers []runtime.Container) []runtime.Container {
	return slices.DeleteFunc(slices.Clone(containers), func(c runtime.Container) bool { return c.EarlierPlace })
}

// anyRegular reports whether a regular container is among these: proof that the
// initialization of the pod was over once.
func anyRegular(pod *v1.Pod, containers []runtime.Container) bool {
	return slices.ContainsFunc(containers, func(c runtime.Container) bool { return isRegular(pod, c.Name) })
}

// sidecarIndex is where a sidecar stands among the init containers, -1 for anything else.
func sidecarIndex(pod *v1.Pod, name string) int {
	return slices.IndexFunc(pod.Spec.InitContainers, func(c v1.Container) bool {
		return c.Name == name && podstatus.IsSidecar(&c)
	})
}
