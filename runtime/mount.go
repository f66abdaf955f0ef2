package runtime

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// MountError says that a volume of a pod could not be set up: why the pod has no place yet.
// StartPod returns one or more of them, joined. Its text is that of the kubelet's event.
type MountError struct {
	Volume string
	Err    error
}

func (e *MountError) Error() string {
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", e.Volume, e.Err)
}

func (e *MountError) Unwrap() error { return e.Err }

// MountErrors finds the volumes that an error of StartPod is about.
func MountErrors(err error) []*MountError {
	if mount, ok := err.(*MountError); ok {
		return []*MountError{mount}
	}
	var found []*MountError
	switch wrapped := err.(type) {
	case interface{ Unwrap() []error }:
		for _, one := range wrapped.Unwrap() {
			found = append(found, MountErrors(one)...)
		}
	case interface{ Unwrap() error }:
		found = MountErrors(errors.Unwrap(err))
	}
	return found
}

// PodUpdater is a [Runtime] to which changes of the pods that it runs are reported: labels
// and annotations may be in its volumes. UpdatePod does not block and ignores pods that the
// runtime does not have. The pod must not be changed afterwards.
type PodUpdater interface {
	UpdatePod(pod *v1.Pod)
}
