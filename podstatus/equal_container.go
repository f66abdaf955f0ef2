package podstatus

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A reading says how the second status of a comparison has to be read so that it compares
// as if it had been normalised. The first one always is.
type reading struct {
	bySecond bool // times have fractions of a second to ignore (N1)
	limit    int  // bytes of a termination message that count (N2)
}

// asIs reads a status that is normalised already.
var asIs = reading{limit: math.MaxInt}

// asStored reads a status as the API stores it: no text is cut, but fractions are lost.
var asStored = reading{bySecond: true, limit: math.MaxInt}

// asReported reads a status of the pod as its reporter built it.
func asReported(pod *v1.Pod) reading {
	return reading{bySecond: true, limit: messageLimit(pod)}
}

// sameStatuses compares container statuses place by place.
func (r reading) sameStatuses(normal, other []v1.ContainerStatus) bool {
	if len(normal) != len(other) {
		return false
	}
	for i := range normal {
		if !r.sameStatus(&normal[i], &other[i]) {
			return false
		}
	}
	return true
}

// sameUnsorted compares container statuses of which the second ones are in any order (N4).
// Each name of the first list being there once, finding all of them in a second list of the
// same length means that the lists match one to one. Otherwise sorted copies decide.
func (r reading) sameUnsorted(normal, raw []v1.ContainerStatus, order statusOrder) bool {
	if len(normal) != len(raw) {
		return false
	}
	if !strictlyOrdered(normal, order) {
		sorted := slices.Clone(raw)
		sortStatuses(sorted, order)
		return r.sameStatuses(normal, sorted)
	}
	for i := range normal {
		other := findStatus(raw, normal[i].Name, i)
		if other == nil || !r.sameStatus(&normal[i], other) {
			return false
		}
	}
	return true
}

// findStatus looks for a name, first where it is likely to be.
func findStatus(list []v1.ContainerStatus, name string, likely int) *v1.ContainerStatus {
	if list[likely].Name == name {
		return &list[likely]
	}
	return statusNamed(list, name)
}

func (r reading) sameStatus(a, b *v1.ContainerStatus) bool {
	return a.Name == b.Name &&
		a.Ready == b.Ready &&
		a.RestartCount == b.RestartCount &&
		a.ContainerID == b.ContainerID &&
		a.Image == b.Image &&
		a.ImageID == b.ImageID &&
		samePointer(a.Started, b.Started) &&
		samePointer(a.StopSignal, b.StopSignal) &&
		r.sameState(&a.State, &b.State) &&
		r.sameState(&a.LastTerminationState, &b.LastTerminationState) &&
		sameResourceList(a.AllocatedResources, b.AllocatedResources) &&
		sameRequirements(a.Resources, b.Resources) &&
		slices.EqualFunc(a.VolumeMounts, b.VolumeMounts, sameMount) &&
		sameUser(a.User, b.User) &&
		slices.EqualFunc(a.AllocatedResourcesStatus, b.AllocatedResourcesStatus, sameResourceStatus) &&
		sameUnwritten(a, b)
}

func (r reading) sameState(a, b *v1.ContainerState) bool {
	return r.sameWaiting(a.Waiting, b.Waiting) &&
		r.sameRunning(a.Running, b.Running) &&
		r.sameTerminated(a.Terminated, b.Terminated)
}

func (r reading) sameWaiting(a, b *v1.ContainerStateWaiting) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameText(a.Reason, b.Reason) && sameText(a.Message, b.Message)
}

func (r reading) sameRunning(a, b *v1.ContainerStateRunning) bool {
	if a == nil || b == nil {
		return a == b
	}
	return r.sameTime(a.StartedAt, b.StartedAt)
}

func (r reading) sameTerminated(a, b *v1.ContainerStateTerminated) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ExitCode == b.ExitCode &&
		a.Signal == b.Signal &&
		a.ContainerID == b.ContainerID &&
		r.sameTime(a.StartedAt, b.StartedAt) &&
		r.sameTime(a.FinishedAt, b.FinishedAt) &&
		sameText(a.Reason, b.Reason) &&
		sameCutText(a.Message, b.Message, r.limit)
}

func (r reading) sameTime(a, b metav1.Time) bool {
	if r.bySecond {
		return a.Unix() == b.Unix()
	}
	return a.Time.Equal(b.Time)
}

// orZero makes a missing time and an unset one the same, as JSON does.
func orZero(t *metav1.Time) metav1.Time {
	if t == nil {
		return metav1.Time{}
	}
	return *t
}

// sameResourceList compares quantities by value: 1Gi is 1024Mi.
func sameResourceList(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

func sameRequirements(a, b *v1.ResourceRequirements) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameResourceList(a.Requests, b.Requests) &&
		sameResourceList(a.Limits, b.Limits) &&
		slices.Equal(a.Claims, b.Claims)
}

func sameMount(a, b v1.VolumeMountStatus) bool {
	return a.Name == b.Name &&
		a.MountPath == b.MountPath &&
		a.ReadOnly == b.ReadOnly &&
		samePointer(a.RecursiveReadOnly, b.RecursiveReadOnly) &&
		sameVolumeStatus(a.VolumeStatus, b.VolumeStatus)
}

func sameVolumeStatus(a, b *v1.VolumeStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return samePointer(a.Image, b.Image)
}

func sameUser(a, b *v1.ContainerUser) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Linux == nil || b.Linux == nil {
		return a.Linux == b.Linux
	}
	return a.Linux.UID == b.Linux.UID &&
		a.Linux.GID == b.Linux.GID &&
		slices.Equal(a.Linux.SupplementalGroups, b.Linux.SupplementalGroups)
}

func sameResourceStatus(a, b v1.ResourceStatus) bool {
	return a.Name == b.Name && slices.EqualFunc(a.Resources, b.Resources, sameHealth)
}

func sameHealth(a, b v1.ResourceHealth) bool {
	return a.ResourceID == b.ResourceID && a.Health == b.Health && samePointer(a.Message, b.Message)
}

// samePointer compares what two pointers point to; nil differs from a pointer to zero.
func samePointer[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
