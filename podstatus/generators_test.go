package podstatus_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// The generators draw pods and statuses that a node could meet: few names, so that two
// draws often touch the same container, and every oddity that the rules speak of, such as
// fractions of seconds, long messages, stray bytes, duplicates and nil next to empty.

// epoch is a whole second around which all drawn times lie.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var (
	ownedTypes = []v1.PodConditionType{
		v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodReadyToStartContainers,
		v1.AllContainersRestarting, v1.PodResizePending, v1.PodResizeInProgress,
	}
	foreignTypes = []v1.PodConditionType{"example.com/gate", "example.com/lb-attached", ""}
	drawnTypes   = slices.Concat(ownedTypes, []v1.PodConditionType{v1.DisruptionTarget}, foreignTypes)

	regularNames   = []string{"app", "db", "log", "proxy"}
	initNames      = []string{"setup", "migrate", "sidecar", "fetch"}
	ephemeralNames = []string{"debug-1", "debug-2"}
)

// fuzz lets the fuzzer play the dice of a property. A drawn status takes some kilobytes of
// them, which it would not come up with by itself: the seeds give it enough to change.
func fuzz(f *testing.F, property func(*rapid.T)) {
	dice := rand.NewChaCha8([32]byte{})
	for range 4 {
		seed := make([]byte, 24<<10)
		dice.Read(seed)
		f.Add(seed)
	}
	f.Fuzz(rapid.MakeFuzz(property))
}

func anyOf[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

// some draws an ordered selection of distinct values.
func some[T any](t *rapid.T, label string, values []T) []T {
	shuffled := rapid.Permutation(values).Draw(t, label)
	return shuffled[:rapid.IntRange(0, len(values)).Draw(t, label+" count")]
}

// maybe draws nil or a pointer to a drawn value.
func maybe[T any](t *rapid.T, label string, draw func(*rapid.T) T) *T {
	if !rapid.Bool().Draw(t, label) {
		return nil
	}
	value := draw(t)
	return &value
}

func drawPod(t *rapid.T) *v1.Pod {
	pod := &v1.Pod{}
	pod.UID = "b7a2f1d0-0000-4000-8000-000000000001"
	pod.Generation = rapid.Int64Range(0, 3).Draw(t, "generation")
	for _, name := range some(t, "spec containers", regularNames) {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name})
	}
	for _, name := range some(t, "spec init containers", initNames) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: name})
	}
	for _, name := range some(t, "spec ephemeral containers", ephemeralNames) {
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers,
			v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: name}})
	}
	return pod
}

func drawStatus(t *rapid.T) *v1.PodStatus {
	return &v1.PodStatus{
		ObservedGeneration: rapid.Int64Range(0, 3).Draw(t, "observed generation"),
		Phase: anyOf(t, "phase", v1.PodRunning, v1.PodPending, v1.PodSucceeded, v1.PodFailed,
			v1.PodUnknown, ""),
		Reason:                     drawText(t, "reason"),
		Message:                    drawText(t, "message"),
		NominatedNodeName:          anyOf(t, "nominated", "", "node-2"),
		HostIP:                     anyOf(t, "host IP", "", "192.0.2.1"),
		HostIPs:                    convertIPs[v1.HostIP](drawIPs(t, "host IPs")),
		PodIP:                      anyOf(t, "pod IP", "", "10.0.0.1", "10.0.0.2"),
		PodIPs:                     convertIPs[v1.PodIP](drawIPs(t, "pod IPs")),
		StartTime:                  maybe(t, "start time", drawTime),
		Conditions:                 drawConditions(t),
		InitContainerStatuses:      drawContainers(t, "init", initNames),
		ContainerStatuses:          drawContainers(t, "regular", regularNames),
		EphemeralContainerStatuses: drawContainers(t, "ephemeral", ephemeralNames),
		QOSClass:                   anyOf(t, "QoS", v1.PodQOSBurstable, v1.PodQOSGuaranteed, ""),
		Resize:                     anyOf(t, "resize", "", v1.PodResizeStatusDeferred),
		AllocatedResources:         drawResources(t, "allocated"),
		Resources:                  maybe(t, "resources", drawRequirements),
		ResourceClaimStatuses: anyOf(t, "claims", nil,
			[]v1.PodResourceClaimStatus{{Name: "gpu"}}, []v1.PodResourceClaimStatus{{Name: "nic"}}),
		ExtendedResourceClaimStatus: anyOf(t, "extended claim", nil,
			&v1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"}),
		NodeAllocatableResourceClaimStatuses: anyOf(t, "allocatable claims", nil,
			[]v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "y"}}),
	}
}

func drawText(t *rapid.T, label string) string {
	return anyOf(t, label, "", "Evicted", "plain text", "<tag> & \"quote\" \\ \n", "naïve ☃", "two\nlines", `C:\path`, "stray \xff\xfe byte",
		"\u2028", "\uFFFD")
}

// drawMessage draws a termination message, at times longer than any share of the budget,
// with runes of each width where the cut may fall.
func drawMessage(t *rapid.T) string {
	unit := anyOf(t, "unit", "a", "é", "☃", "🙂", "\xff", "a\xe2\x98")
	length := anyOf(t, "length", 0, 0, 1, 1, 3, 3, 3, 3, 1200, 5000)
	return anyOf(t, "prefix", "", "x", "xy") + strings.Repeat(unit, length)
}

func drawTime(t *rapid.T) metav1.Time {
	if rapid.IntRange(0, 9).Draw(t, "zero time") == 0 {
		return metav1.Time{}
	}
	at := epoch.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "seconds")) * time.Second)
	at = at.Add(time.Duration(anyOf(t, "fraction", 0, 1, 500_000_000, 999_999_999)))
	return metav1.NewTime(at.In(anyOf(t, "zone", time.UTC, time.FixedZone("east", 2*3600))))
}

func drawIPs(t *rapid.T, label string) []string {
	return some(t, label, []string{"10.0.0.1", "10.0.0.2", "fd00::1"})
}

func convertIPs[T v1.PodIP | v1.HostIP](list []string) []T {
	var out []T
	for _, ip := range list {
		out = append(out, T(v1.PodIP{IP: ip}))
	}
	return out
}

func drawConditions(t *rapid.T) []v1.PodCondition {
	var list []v1.PodCondition
	for _, kind := range some(t, "condition types", drawnTypes) {
		list = append(list, drawCondition(t, kind))
	}
	if len(list) > 0 && rapid.IntRange(0, 7).Draw(t, "duplicate condition") == 0 {
		list = append(list, drawCondition(t, list[0].Type))
	}
	return list
}

func drawCondition(t *rapid.T, kind v1.PodConditionType) v1.PodCondition {
	return v1.PodCondition{
		Type:               kind,
		Status:             anyOf(t, "condition status", v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown),
		Reason:             drawText(t, "condition reason"),
		Message:            drawText(t, "condition message"),
		ObservedGeneration: rapid.Int64Range(0, 2).Draw(t, "condition generation"),
		LastProbeTime:      drawTime(t),
		LastTransitionTime: drawTime(t),
	}
}

func drawContainers(t *rapid.T, label string, names []string) []v1.ContainerStatus {
	var list []v1.ContainerStatus
	for _, name := range some(t, label, append([]string{"unknown"}, names...)) {
		list = append(list, drawContainer(t, name))
	}
	if len(list) > 0 && rapid.IntRange(0, 7).Draw(t, "duplicate container") == 0 {
		list = append(list, drawContainer(t, list[0].Name))
	}
	return list
}

func drawContainer(t *rapid.T, name string) v1.ContainerStatus {
	return v1.ContainerStatus{
		Name:                 name,
		State:                drawState(t),
		LastTerminationState: drawState(t),
		Ready:                rapid.Bool().Draw(t, "ready"),
		RestartCount:         rapid.Int32Range(0, 2).Draw(t, "restarts"),
		Image:                anyOf(t, "image", "", "registry.example/app:1", "app:\xff"),
		ImageID:              anyOf(t, "image ID", "", "sha256:1", "sha256:\xff"),
		ContainerID:          anyOf(t, "container ID", "", "process://1", "process://2", "process://\xff"),
		Started:              maybe(t, "started", func(t *rapid.T) bool { return rapid.Bool().Draw(t, "is started") }),
		AllocatedResources:   drawResources(t, "container allocated"),
		Resources:            maybe(t, "container resources", drawRequirements),
		VolumeMounts:         drawMounts(t),
		User:                 maybe(t, "user", drawUser),
		AllocatedResourcesStatus: anyOf(t, "health", nil, []v1.ResourceStatus{}, []v1.ResourceStatus{{
			Name:      "example.com/gpu",
			Resources: []v1.ResourceHealth{{ResourceID: "0", Health: v1.ResourceHealthStatusHealthy}},
		}}),
		StopSignal: maybe(t, "stop signal", func(t *rapid.T) v1.Signal {
			return anyOf(t, "signal", v1.SIGTERM, v1.SIGKILL)
		}),
	}
}

func drawState(t *rapid.T) v1.ContainerState {
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 1:
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{
			Reason: drawText(t, "waiting reason"), Message: drawText(t, "waiting message"),
		}}
	case 2:
		return v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: drawTime(t)}}
	case 3:
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: rapid.Int32Range(0, 1).Draw(t, "exit code"), Signal: rapid.Int32Range(0, 1).Draw(t, "signal"),
			Reason: drawText(t, "terminated reason"), Message: drawMessage(t),
			StartedAt: drawTime(t), FinishedAt: drawTime(t), ContainerID: anyOf(t, "ended ID", "", "process://0", "process://\xff"),
		}}
	}
	return v1.ContainerState{}
}

func drawResources(t *rapid.T, label string) v1.ResourceList {
	if rapid.Bool().Draw(t, label) {
		return nil
	}
	list := v1.ResourceList{}
	for _, name := range some(t, label, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "example.com/\"gpu\""}) {
		list[name] = drawQuantity(t)
	}
	return list
}

func drawQuantity(t *rapid.T) resource.Quantity {
	return resource.MustParse(anyOf(t, "quantity", "0", "1", "1000m", "1500m", "1Gi", "1024Mi", "1073741824", "1e3",
		"100000000000000000000", "100e18"))
}

func drawRequirements(t *rapid.T) v1.ResourceRequirements {
	return v1.ResourceRequirements{
		Limits:   drawResources(t, "limits"),
		Requests: drawResources(t, "requests"),
		Claims: anyOf(t, "resource claims", nil, []v1.ResourceClaim{},
			[]v1.ResourceClaim{{Name: "gpu"}}, []v1.ResourceClaim{{Name: "gpu", Request: "one"}}),
	}
}

func drawMounts(t *rapid.T) []v1.VolumeMountStatus {
	var list []v1.VolumeMountStatus
	for _, path := range some(t, "mounts", []string{"/data", "/etc/config"}) {
		list = append(list, v1.VolumeMountStatus{
			Name: "volume", MountPath: path, ReadOnly: rapid.Bool().Draw(t, "read-only"),
			RecursiveReadOnly: anyOf(t, "recursive", nil, new(v1.RecursiveReadOnlyEnabled)),
			VolumeStatus: anyOf(t, "volume status", nil, &v1.VolumeStatus{},
				&v1.VolumeStatus{Image: &v1.ImageVolumeStatus{ImageRef: "ref"}}),
		})
	}
	return list
}

func drawUser(t *rapid.T) v1.ContainerUser {
	return v1.ContainerUser{Linux: maybe(t, "linux user", func(t *rapid.T) v1.LinuxContainerUser {
		return v1.LinuxContainerUser{
			UID: rapid.Int64Range(0, 1).Draw(t, "user ID"), GID: rapid.Int64Range(0, 1).Draw(t, "group ID"),
			SupplementalGroups: anyOf(t, "groups", nil, []int64{}, []int64{1, 2}),
		}
	})}
}

func conditionType(c v1.PodCondition) string    { return string(c.Type) }
func containerName(c v1.ContainerStatus) string { return c.Name }

// distinct says that no two elements have the same key.
func distinct[T any](list []T, key func(T) string) bool {
	seen := map[string]bool{}
	for _, element := range list {
		if seen[key(element)] {
			return false
		}
		seen[key(element)] = true
	}
	return true
}

// drawNoise returns a copy of the status that normalizing should make equal to it: other
// orders, fractions of seconds, zones, units, nil for empty, other foreign data.
func drawNoise(t *rapid.T, status *v1.PodStatus) *v1.PodStatus {
	noisy := status.DeepCopy()
	for i := range noisy.Conditions {
		c := &noisy.Conditions[i]
		c.LastProbeTime, c.LastTransitionTime = drawTime(t), drawTime(t)
		c.ObservedGeneration = rapid.Int64Range(0, 2).Draw(t, "other condition generation")
		if isForeign(c.Type) {
			c.Message = "another writer's"
		}
	}
	if distinct(noisy.Conditions, conditionType) { // else the order says which one counts
		noisy.Conditions = rapid.Permutation(noisy.Conditions).Draw(t, "condition order")
	}
	for _, list := range []*[]v1.ContainerStatus{
		&noisy.InitContainerStatuses, &noisy.ContainerStatuses, &noisy.EphemeralContainerStatuses,
	} {
		for i := range *list {
			drawContainerNoise(t, &(*list)[i])
		}
		if distinct(*list, containerName) {
			*list = rapid.Permutation(*list).Draw(t, "container order")
		}
	}
	noisy.ResourceClaimStatuses = nil
	noisy.AllocatedResources = otherUnits(noisy.AllocatedResources)
	return noisy
}

func drawContainerNoise(t *rapid.T, status *v1.ContainerStatus) {
	if r := status.State.Running; r != nil && !r.StartedAt.IsZero() {
		r.StartedAt = metav1.NewTime(r.StartedAt.Truncate(time.Second).
			Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "milliseconds")) * time.Millisecond).Local())
	}
	if len(status.VolumeMounts) == 0 {
		status.VolumeMounts = []v1.VolumeMountStatus{}
	}
	status.AllocatedResources = otherUnits(status.AllocatedResources)
}

// otherUnits returns the same quantities in another representation.
func otherUnits(list v1.ResourceList) v1.ResourceList {
	other := v1.ResourceList{}
	for name, quantity := range list {
		quantity = quantity.DeepCopy()
		quantity.ToDec()
		other[name] = quantity
	}
	return other
}

// drawOther returns a status close to the given one: noise, and mostly one field replaced.
func drawOther(t *rapid.T, status *v1.PodStatus) *v1.PodStatus {
	other := drawNoise(t, status)
	fresh := drawStatus(t)
	switch rapid.IntRange(0, 14).Draw(t, "replaced") {
	case 0:
		return fresh
	case 1:
		other.Conditions = fresh.Conditions
	case 2:
		other.ContainerStatuses = fresh.ContainerStatuses
	case 3:
		other.InitContainerStatuses = fresh.InitContainerStatuses
	case 4:
		other.EphemeralContainerStatuses = fresh.EphemeralContainerStatuses
	case 5:
		other.Phase, other.Reason, other.Message = fresh.Phase, fresh.Reason, fresh.Message
	case 6:
		other.PodIP, other.PodIPs = fresh.PodIP, fresh.PodIPs
	case 7:
		other.HostIP, other.HostIPs = fresh.HostIP, fresh.HostIPs
	case 8:
		other.StartTime = fresh.StartTime
	case 9:
		other.Resources, other.AllocatedResources = fresh.Resources, fresh.AllocatedResources
	case 10:
		other.ObservedGeneration, other.QOSClass, other.Resize = fresh.ObservedGeneration, fresh.QOSClass, fresh.Resize
	case 11:
		if len(other.ContainerStatuses) > 0 {
			c := &other.ContainerStatuses[0]
			*c = drawContainer(t, c.Name)
		}
	}
	return other
}
