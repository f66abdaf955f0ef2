package status

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/statusd/statusd/podstatus"
)

// base is a copy of the API's pod: what a write is a difference to. It keeps only what
// that needs, since there is one for each pod.
type base struct {
	resourceVersion string
	status          *v1.PodStatus // never changed
	// ended: but for the finished flag, the pod may be deleted from the API.
	ended bool
}

func baseOf(pod *v1.Pod) *base {
	return &base{
		resourceVersion: pod.ResourceVersion,
		status:          &pod.Status,
		ended:           podstatus.Deletable(pod, true),
	}
}

// newer returns the newer of two copies of one object; either may be nil. Of two that
// cannot be compared it is the second: pass what is trusted more last.
func newer(a, b *base) *base {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	if order, err := resourceversion.CompareResourceVersion(a.resourceVersion, b.resourceVersion); err == nil && order > 0 {
		return a
	}
	return b
}

// slim returns the answer to a write without the memory of a second status, if it can: an
// answer that says what was written is stood for by that, or even by the cached status, if
// nobody else has a part in what was written.
func (b *base) slim(uid types.UID, written, cached *v1.PodStatus) *base {
	status := written
	switch {
	case !b.says(uid, written):
		status = b.status.DeepCopy() // and not the whole pod with it
	case len(written.Conditions) == len(cached.Conditions) && b.says(uid, cached):
		status = cached
	}
	return &base{resourceVersion: b.resourceVersion, status: status, ended: b.ended}
}

// says tells whether there would be nothing to send to make the pod say this.
func (b *base) says(uid types.UID, status *v1.PodStatus) bool {
	patch, err := podstatus.Patch(uid, b.status, status)
	return err == nil && patch == nil
}
