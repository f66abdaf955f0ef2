package podstatus_test

import (
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
)

// Equality and patch are written out field by field. These tests make sure that no one
// forgets one: each field of a pod status is classed here, each class is proven.

type class int

const (
	compared class = iota + 1 // a difference is a change, and is sent
	settled                   // compared, but Next settles it and not the reporter (U2, U8)
	ignored                   // other writers' (E4), or not a change by itself (E2)
)

type fields map[string]class

var classes = map[reflect.Type]fields{
	reflect.TypeFor[v1.PodStatus](): {
		"ObservedGeneration": settled, "Phase": compared, "Conditions": compared, "Message": compared, "Reason": compared,
		"NominatedNodeName": compared, "HostIP": compared, "HostIPs": compared, "PodIP": compared, "PodIPs": compared,
		"StartTime": settled, "InitContainerStatuses": compared, "ContainerStatuses": compared, "QOSClass": compared,
		"EphemeralContainerStatuses": compared, "Resize": compared, "AllocatedResources": compared, "Resources": compared,
		"ResourceClaimStatuses": ignored, "ExtendedResourceClaimStatus": ignored, "NodeAllocatableResourceClaimStatuses": ignored,
	},
	reflect.TypeFor[v1.PodCondition](): {
		"Type": compared, "Status": compared, "Reason": compared, "Message": compared,
		"ObservedGeneration": ignored, "LastProbeTime": ignored, "LastTransitionTime": ignored,
	},
	reflect.TypeFor[v1.PodIP]():  {"IP": compared},
	reflect.TypeFor[v1.HostIP](): {"IP": compared},
	reflect.TypeFor[v1.ContainerStatus](): {
		"Name": compared, "State": compared, "LastTerminationState": compared, "Ready": compared, "RestartCount": compared,
		"Image": compared, "ImageID": compared, "ContainerID": compared, "Started": compared, "AllocatedResources": compared,
		"Resources": compared, "VolumeMounts": compared, "User": compared, "AllocatedResourcesStatus": compared,
		"StopSignal": compared,
	},
	reflect.TypeFor[v1.ContainerState]():        {"Waiting": compared, "Running": compared, "Terminated": compared},
	reflect.TypeFor[v1.ContainerStateWaiting](): {"Reason": compared, "Message": compared},
	reflect.TypeFor[v1.ContainerStateRunning](): {"StartedAt": compared},
	reflect.TypeFor[v1.ContainerStateTerminated](): {
		"ExitCode": compared, "Signal": compared, "Reason": compared, "Message": compared, "StartedAt": compared,
		"FinishedAt": compared, "ContainerID": compared,
	},
	reflect.TypeFor[v1.ResourceRequirements](): {"Limits": compared, "Requests": compared, "Claims": compared},
	reflect.TypeFor[v1.ResourceClaim]():        {"Name": compared, "Request": compared},
	reflect.TypeFor[v1.VolumeMountStatus](): {
		"Name": compared, "MountPath": compared, "ReadOnly": compared, "RecursiveReadOnly": compared, "VolumeStatus": compared,
	},
	reflect.TypeFor[v1.VolumeStatus]():       {"Image": compared},
	reflect.TypeFor[v1.ImageVolumeStatus]():  {"ImageRef": compared},
	reflect.TypeFor[v1.ContainerUser]():      {"Linux": compared},
	reflect.TypeFor[v1.LinuxContainerUser](): {"UID": compared, "GID": compared, "SupplementalGroups": compared},
	reflect.TypeFor[v1.ResourceStatus]():     {"Name": compared, "Resources": compared},
	reflect.TypeFor[v1.ResourceHealth]():     {"ResourceID": compared, "Health": compared, "Message": compared},
}

var (
	timeType     = reflect.TypeFor[metav1.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
)

func TestEachFieldOfAPodStatusIsClassed(t *testing.T) {
	walkTypes(t, reflect.TypeFor[v1.PodStatus](), map[reflect.Type]bool{})
}

func walkTypes(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walkTypes(t, typ.Elem(), seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[typ] || typ == timeType || typ == quantityType {
		return
	}
	seen[typ] = true
	if classes[typ] == nil {
		t.Errorf("%v is part of a pod status, but its fields are not classed here", typ)
		return
	}
	for field := range typ.Fields() {
		switch classes[typ][field.Name] {
		case 0:
			t.Errorf("the API has a field %v.%s that is not classed: compare it in equal*.go, write it in patch*.go, "+
				"and class it here", typ, field.Name)
		case compared, settled:
			walkTypes(t, field.Type, seen)
		}
	}
	if len(classes[typ]) != typ.NumField() {
		t.Errorf("%v has %d fields, %d are classed: one of them is gone from the API", typ, typ.NumField(), len(classes[typ]))
	}
}

func TestE5_EachComparedFieldCountsAndIsSent(t *testing.T) {
	pod := &v1.Pod{}
	original := fullStatus()
	normal := podrules.Normalize(pod, original)
	for _, m := range mutations() {
		other := original.DeepCopy()
		m.apply(reflect.ValueOf(other).Elem())
		otherNormal := podrules.Normalize(pod, other)
		counts := m.class != ignored
		if got := !podrules.Equal(&normal, &otherNormal); got != counts {
			t.Errorf("%s changed: Equal sees a change: %v, want %v", m.path, got, counts)
		}
		if got := podrules.NeedsReconcile(pod, other, &normal); got != counts {
			t.Errorf("%s changed: NeedsReconcile = %v, want %v", m.path, got, counts)
		}
		if got, want := !podrules.Unchanged(pod, &normal, other), m.class == compared; got != want {
			t.Errorf("%s changed: Unchanged sees a change: %v, want %v", m.path, got, want)
		}
		if counts {
			patched := podrules.Normalize(pod, apply(t, &normal, mustPatch(t, &normal, &otherNormal)))
			if !podrules.Equal(&patched, &otherNormal) {
				t.Errorf("%s changed: the patch does not carry it: %s", m.path, mustPatch(t, &normal, &otherNormal))
			}
		}
	}
}

// fullStatus sets each compared field, lists to one element.
func fullStatus() *v1.PodStatus {
	var status v1.PodStatus
	fill(reflect.ValueOf(&status).Elem())
	status.Conditions[0].Type = v1.PodReady
	return &status
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(v1.ResourceCPU), reflect.ValueOf(resource.MustParse("1")))
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(metav1.NewTime(epoch)))
			return
		}
		if v.Type() == reflect.TypeFor[resource.Quantity]() {
			v.Set(reflect.ValueOf(resource.MustParse("1")))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	default:
		alter(v)
	}
}

// alter changes a plain value.
func alter(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
}

type mutation struct {
	path  string
	class class
	apply func(status reflect.Value)
}

// mutations changes each field of a full status in each way it can change.
func mutations() []mutation {
	return mutationsOf(reflect.TypeFor[v1.PodStatus](), "", compared, func(v reflect.Value) reflect.Value { return v })
}

// mutationsOf lists the mutations below a value of the type that reach finds in a status.
func mutationsOf(typ reflect.Type, path string, class class, reach func(reflect.Value) reflect.Value) []mutation {
	change := func(how string, to func(v reflect.Value)) mutation {
		return mutation{path + how, class, func(status reflect.Value) { to(reach(status)) }}
	}
	switch {
	case typ == timeType:
		return []mutation{change("", func(v reflect.Value) {
			v.Set(reflect.ValueOf(metav1.NewTime(epoch.Add(time.Second))))
		})}
	case typ.Kind() == reflect.Pointer:
		return append(mutationsOf(typ.Elem(), path, class, func(s reflect.Value) reflect.Value { return reach(s).Elem() }),
			change(" to nil", func(v reflect.Value) { v.SetZero() }))
	case typ == reflect.TypeFor[[]v1.PodIP](), typ == reflect.TypeFor[[]v1.HostIP]():
		// The first one follows from the main address (N6).
		return []mutation{change(" longer", func(v reflect.Value) {
			second := reflect.New(typ.Elem()).Elem()
			second.FieldByName("IP").SetString("y")
			v.Set(reflect.Append(v, second))
		})}
	case typ.Kind() == reflect.Slice:
		return append(mutationsOf(typ.Elem(), path+"[]", class, func(s reflect.Value) reflect.Value { return reach(s).Index(0) }),
			change(" to nil", func(v reflect.Value) { v.SetZero() }))
	case typ.Kind() == reflect.Map:
		key := reflect.ValueOf(v1.ResourceCPU)
		return []mutation{
			change(" to nil", func(v reflect.Value) { v.SetZero() }),
			change(" value", func(v reflect.Value) { v.SetMapIndex(key, reflect.ValueOf(resource.MustParse("2"))) }),
			change(" key", func(v reflect.Value) {
				v.SetMapIndex(reflect.ValueOf(v1.ResourceMemory), v.MapIndex(key))
				v.SetMapIndex(key, reflect.Value{})
			}),
		}
	case typ.Kind() == reflect.Struct && classes[typ] != nil:
		var list []mutation
		for field := range typ.Fields() {
			list = append(list, mutationsOf(field.Type, path+separator(path)+field.Name, stricter(class, classes[typ][field.Name]),
				func(s reflect.Value) reflect.Value { return reach(s).FieldByIndex(field.Index) })...)
		}
		return list
	case typ.Kind() == reflect.Struct: // inside of an ignored field
		return []mutation{change("", func(v reflect.Value) { v.SetZero() })}
	case typ == reflect.TypeFor[v1.PodConditionType]():
		return []mutation{change("", func(v reflect.Value) { v.SetString(string(v1.PodScheduled)) })}
	default:
		return []mutation{change("", alter)}
	}
}

// stricter is the class of a field inside of another: what is ignored stays so.
func stricter(outer, inner class) class {
	return max(outer, inner)
}

func separator(path string) string {
	if path == "" {
		return ""
	}
	return "."
}
