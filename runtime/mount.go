package runtime

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// MountError is the error of a volume of a pod that could not be set up. StartPod returns one or
// more of them, joined. The text equals the message of the kubelet's event.
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

// PodUpdater is implemented by a [Runtime] that needs the changes of its pods: volumes may contain
// labels and annotations. UpdatePod does not block and ignores unknown pods. The pod must not be
// changed afterwards.
type PodUpdater interface {
	UpdatePod(pod *v1.Pod)
}
