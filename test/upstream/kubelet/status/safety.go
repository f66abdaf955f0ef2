package status

import (
	v1 "k8s.io/api/core/v1"

	statusd "github.com/statusd/statusd/status"
)

// PodDeletionSafetyProvider decides when the end of a pod may be published.
type PodDeletionSafetyProvider interface {
	// PodCouldHaveRunningContainers reports whether a container of the pod could run.
	PodCouldHaveRunningContainers(pod *v1.Pod) bool
}

type safety struct{ provider PodDeletionSafetyProvider }

func (s safety) CouldHaveRunningContainers(pod *v1.Pod) bool {
	return s.provider.PodCouldHaveRunningContainers(pod)
}

// reclaimer is what kubelets before 1.27 asked before a pod was deleted.
type reclaimer interface {
	PodResourcesAreReclaimed(pod *v1.Pod, status v1.PodStatus) bool
}

type reclaim struct{ provider reclaimer }

func (r reclaim) ResourcesReclaimed(pod *v1.Pod, status *v1.PodStatus) bool {
	return r.provider.PodResourcesAreReclaimed(pod, *status)
}

// reclaimOf returns the stricter condition for deleting a pod, nil if the provider has none.
func reclaimOf(provider PodDeletionSafetyProvider) statusd.Reclaim {
	if r, ok := provider.(reclaimer); ok {
		return reclaim{r}
	}
	return nil
}
