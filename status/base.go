package status

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// base is a copy of the API's pod: what a write is a difference to. It keeps only what
// that needs, since there is one for each pod.
type base struct {
	status   *v1.PodStatus // never changed; nil: the copy is not known
	revision revision
	// ended: but for the finished flag, the pod may be deleted from the API.
	ended bool
	// settled: the copy was found to need nothing from us.
	settled bool
}

// revision is a resource version as the number that it is (since Kubernetes 1.35 for every
// resource): of two copies of an object that with the greater one is newer. It is 0 if the
// resource version is not a number, and says nothing then.
type revision uint64

func revisionOf(pod *v1.Pod) revision { return parseRevision(pod.ResourceVersion) }

func parseRevision(version string) revision {
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return revision(number)
}

func baseOf(pod *v1.Pod) base {
	return base{
		status:   &pod.Status,
		revision: revisionOf(pod),
		ended:    podstatus.Deletable(pod, true),
	}
}

func (b base) known() bool { return b.status != nil }

// same tells whether this is that very copy.
func (b base) same(other base) bool { return b.status == other.status && b.revision == other.revision }

// supersedes tells whether this copy is newer than one that is trusted more if the two
// cannot be compared.
func (b base) supersedes(trusted base) bool {
	if !b.known() || !trusted.known() {
		return b.known()
	}
	return trusted.revision != 0 && b.revision > trusted.revision
}

// newer returns the newer of two copies of one object; either may be unknown.
func newer(other, trusted base) base {
	if other.supersedes(trusted) {
		return other
	}
	return trusted
}

// slim returns the answer to a write without the memory of a second status, if it can: an
// answer that says what was written is stood for by that, or even by the cached status, if
// nobody else has a part in what was written.
func (b base) slim(owns podstatus.Ownership, uid types.UID, written, cached *v1.PodStatus) base {
	switch {
	case !b.says(owns, uid, written):
		b.status = b.status.DeepCopy() // and not the whole pod with it
	case len(written.Conditions) == len(cached.Conditions) && b.says(owns, uid, cached):
		b.status = cached
	default:
		b.status = written
	}
	return b
}

// says tells whether there would be nothing to send to make the pod say this.
func (b base) says(owns podstatus.Ownership, uid types.UID, status *v1.PodStatus) bool {
	patch, err := owns.Patch(uid, b.status, status)
	return err == nil && patch == nil
}
