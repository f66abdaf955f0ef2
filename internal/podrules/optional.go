package podrules

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Fields that k8s.io/api has from 0.36 on. They are found by name when the program starts, so that the package builds with
// 0.35 too.
var (
	allocatableClaims = findOptional[v1.PodStatus]("NodeAllocatableResourceClaimStatuses")
	volumeStatus      = findOptional[v1.VolumeMountStatus]("VolumeStatus")
	healthMessage     = findOptional[v1.ResourceHealth]("Message")
)

// optional is a field of T, unless this version of k8s.io/api lacks the field.
type optional[T any] struct{ index []int }

func findOptional[T any](name string) optional[T] {
	field, _ := reflect.TypeFor[T]().FieldByName(name)
	return optional[T]{field.Index}
}

// of returns the field of a value, which must not be changed unless the value may be.
func (f optional[T]) of(value *T) reflect.Value {
	return reflect.ValueOf(value).Elem().FieldByIndex(f.index)
}

// copy sets the field of a value to the field of another.
func (f optional[T]) copy(to, from *T) {
	if f.index != nil {
		f.of(to).Set(f.of(from))
	}
}

// same reports whether the fields of two values are deeply equal.
func (f optional[T]) same(a, b *T) bool {
	return f.index == nil || sameValue(f.of(a), f.of(b))
}

// sameValue compares without allocation what the fields of this file have: pointers, structs and texts. Nil differs from a
// pointer to zero.
func sameValue(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameValue(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.String:
		return a.String() == b.String()
	}
	return equality.Semantic.DeepEqual(a.Interface(), b.Interface())
}

// withOptional adds the fields of the type of [volumeStatus] to a table of fields by type.
func withOptional(fields map[reflect.Type]string) map[reflect.Type]string {
	if volumeStatus.index == nil {
		return fields
	}
	status := reflect.TypeFor[v1.VolumeMountStatus]().FieldByIndex(volumeStatus.index).Type.Elem()
	fields[status] = "Image"
	if image, found := status.FieldByName("Image"); found {
		fields[image.Type.Elem()] = "ImageRef"
	}
	return fields
}
