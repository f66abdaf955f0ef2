package observer

import (
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/machine/logs"
)

// find is the pod and the container of a process that a log names.
func (o *Observer) find(victim *logs.Victim) (pod *v1.Pod, container string) {
	facts := o.view.Load().facts
	if known, ok := facts.APIPods[victim.UID]; ok {
		pod = known.Pod
	} else if known, ok := facts.KubeletPods[victim.UID]; ok {
		pod = known.Pod
	}
	return pod, facts.Containers[victim.ContainerID].Name
}
