package podrules

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Comparing and patching are written out field by field. A program that builds this package
// with a newer k8s.io/api has fields in its types that are not written out here. They are
// found by name when the program starts, and compared and sent by generic means, which are
// slower: otherwise they would be lost without a word.
//
// Nothing is known of whose such a field is. So a field of the status that this node leaves
// empty is left as the API has it (U9).

// written are the fields that equal*.go and patch*.go know, by type.
var written = withOptional(map[reflect.Type]string{
	reflect.TypeFor[v1.PodStatus](): "ObservedGeneration Phase Conditions Message Reason NominatedNodeName HostIP HostIPs PodIP PodIPs " +
		"StartTime InitContainerStatuses ContainerStatuses QOSClass EphemeralContainerStatuses Resize AllocatedResources Resources " +
		"ResourceClaimStatuses ExtendedResourceClaimStatus NodeAllocatableResourceClaimStatuses",
	reflect.TypeFor[v1.PodCondition](): "Type Status Reason Message ObservedGeneration LastProbeTime LastTransitionTime",
	reflect.TypeFor[v1.PodIP]():        "IP",
	reflect.TypeFor[v1.HostIP]():       "IP",
	reflect.TypeFor[v1.ContainerStatus](): "Name State LastTerminationState Ready RestartCount Image ImageID ContainerID Started " +
		"AllocatedResources Resources VolumeMounts User AllocatedResourcesStatus StopSignal",
	reflect.TypeFor[v1.ContainerState]():           "Waiting Running Terminated",
	reflect.TypeFor[v1.ContainerStateWaiting]():    "Reason Message",
	reflect.TypeFor[v1.ContainerStateRunning]():    "StartedAt",
	reflect.TypeFor[v1.ContainerStateTerminated](): "ExitCode Signal Reason Message StartedAt FinishedAt ContainerID",
	reflect.TypeFor[v1.ResourceRequirements]():     "Limits Requests Claims",
	reflect.TypeFor[v1.ResourceClaim]():            "Name Request",
	reflect.TypeFor[v1.VolumeMountStatus]():        "Name MountPath ReadOnly RecursiveReadOnly VolumeStatus",
	reflect.TypeFor[v1.ContainerUser]():            "Linux",
	reflect.TypeFor[v1.LinuxContainerUser]():       "UID GID SupplementalGroups",
	reflect.TypeFor[v1.ResourceStatus]():           "Name Resources",
	reflect.TypeFor[v1.ResourceHealth]():           "ResourceID Health Message",
})

// unwritten are the other fields of these types, by index. It is empty with the version of
// k8s.io/api that this package was written for, and never changes.
var unwritten = findUnwritten(written)

func findUnwritten(written map[reflect.Type]string) map[reflect.Type][]int {
	found := make(map[reflect.Type][]int)
	for t, names := range written {
		for i := range t.NumField() {
			if !strings.Contains(" "+names+" ", " "+t.Field(i).Name+" ") {
				found[t] = append(found[t], i)
			}
		}
	}
	return found
}

// sameUnwritten compares two values in the fields that are not written out, at any depth.
// Container statuses and conditions inside of a status are left to those who match them.
func sameUnwritten[T any](a, b *T) bool {
	if len(unwritten) == 0 {
		return true
	}
	x, y := *a, *b // copies: reflection would make every caller's value escape to the heap
	return sameRest(reflect.ValueOf(&x).Elem(), reflect.ValueOf(&y).Elem())
}

func sameRest(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		return a.IsNil() || b.IsNil() || sameRest(a.Elem(), b.Elem())
	case reflect.Slice:
		if _, known := written[a.Type().Elem()]; !known || a.Len() != b.Len() {
			return true
		}
		for i := range a.Len() {
			if !sameRest(a.Index(i), b.Index(i)) {
				return false
			}
		}
	case reflect.Struct:
		return sameRestOfStruct(a, b)
	}
	return true
}

func sameRestOfStruct(a, b reflect.Value) bool {
	t := a.Type()
	if _, known := written[t]; !known {
		return true
	}
	for _, i := range unwritten[t] {
		if !equality.Semantic.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			return false
		}
	}
	for i := range t.NumField() {
		if matchedElsewhere(t.Field(i).Type) {
			continue
		}
		if !sameRest(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

func matchedElsewhere(t reflect.Type) bool {
	return t == reflect.TypeFor[[]v1.ContainerStatus]() || t == reflect.TypeFor[[]v1.PodCondition]()
}

// keepUnwritten gives status the API's values of the fields that are not written out and that
// the status leaves empty.
func keepUnwritten(status, api *v1.PodStatus) {
	to, from := reflect.ValueOf(status).Elem(), reflect.ValueOf(api).Elem()
	for _, i := range unwritten[to.Type()] {
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
}

// reconcilesUnwritten reports whether the API's status has what cached says in the fields that
// are not written out; what cached leaves empty does not count.
func reconcilesUnwritten(api, cached *v1.PodStatus) bool {
	if len(unwritten) == 0 {
		return true
	}
	kept := *cached
	keepUnwritten(&kept, api)
	return sameUnwritten(api, &kept)
}

// writeUnwritten writes the members of a value that are not written out and differ, as the two-way
// strategic merge of the type does.
func writeUnwritten[T any](p *patchWriter, base, desired *T) {
	fields := unwritten[reflect.TypeFor[T]()]
	if len(fields) == 0 {
		return
	}
	only := func(from *T) ([]byte, error) {
		var value T
		for _, i := range fields {
			reflect.ValueOf(&value).Elem().Field(i).Set(reflect.ValueOf(from).Elem().Field(i))
		}
		return json.Marshal(value)
	}
	members, err := twoWay[T](only, base, desired)
	if err != nil {
		p.err = err
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := members[name]
		p.quotedKey(name)
		p.comma()
		p.buf = append(p.buf, value...)
	}
}

func twoWay[T any](encode func(*T) ([]byte, error), base, desired *T) (map[string]json.RawMessage, error) {
	before, err := encode(base)
	if err != nil {
		return nil, err
	}
	after, err := encode(desired)
	if err != nil {
		return nil, err
	}
	var zero T
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, zero)
	if err != nil {
		return nil, fmt.Errorf("fields that are new in the API: %w", err)
	}
	var members map[string]json.RawMessage
	return members, json.Unmarshal(patch, &members)
}
