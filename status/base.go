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
	uid             types.UID
	resourceVersion string
	status          *v1.PodStatus // never changed
	// ended: but for the finished flag, the pod may be deleted from the API.
	ended bool
}

func baseOf(pod *v1.Pod) *base {
	return &base{
		uid:             pod.UID,
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

// slim returns the answer to a write without the memory of a second status, if the
// answer says what was written: then the status that was written stands for both.
func (b *base) slim(written *v1.PodStatus) *base {
	patch, err := podstatus.Patch(b.uid, b.status, written)
	if err != nil || patch != nil {
		return &base{uid: b.uid, resourceVersion: b.resourceVersion, status: b.status.DeepCopy(), ended: b.ended}
	}
	return &base{uid: b.uid, resourceVersion: b.resourceVersion, status: written, ended: b.ended}
}
