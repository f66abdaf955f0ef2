package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Share returns status with those of its lists taken from api in which both say exactly the
// same, so that one copy of them in memory serves both. Neither is written to.
func Share(status, api *v1.PodStatus) v1.PodStatus {
	shared := *status
	shareList(&shared.Conditions, api.Conditions, slices.EqualFunc(status.Conditions, api.Conditions, identicalConditions))
	shareList(&shared.ContainerStatuses, api.ContainerStatuses, asIs.sameStatuses(status.ContainerStatuses, api.ContainerStatuses))
	shareList(&shared.InitContainerStatuses, api.InitContainerStatuses, asIs.sameStatuses(status.InitContainerStatuses, api.InitContainerStatuses))
	shareList(&shared.EphemeralContainerStatuses, api.EphemeralContainerStatuses, asIs.sameStatuses(status.EphemeralContainerStatuses, api.EphemeralContainerStatuses))
	shareList(&shared.HostIPs, api.HostIPs, slices.Equal(status.HostIPs, api.HostIPs))
	shareList(&shared.PodIPs, api.PodIPs, slices.Equal(status.PodIPs, api.PodIPs))
	if asIs.sameTime(orZero(status.StartTime), orZero(api.StartTime)) {
		shared.StartTime = api.StartTime
	}
	return shared
}

// shareList takes a list without its spare capacity, see exactCopy.
func shareList[T any](list *[]T, from []T, same bool) {
	if same {
		*list = slices.Clip(from)
	}
}

// identicalConditions compares everything that the API stores of a condition.
func identicalConditions(a, b v1.PodCondition) bool {
	return a.Type == b.Type && sameCondition(&a, &b) && a.ObservedGeneration == b.ObservedGeneration &&
		asIs.sameTime(a.LastTransitionTime, b.LastTransitionTime) && asIs.sameTime(a.LastProbeTime, b.LastProbeTime)
}
