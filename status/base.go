package status

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
)

// base is a copy of the API's pod; a write is the difference to it. The copy has only the fields
// that a write needs, since there is a base for each pod.
type base struct {
	status   *v1.PodStatus // never changed; nil: the copy is not known
	revision revision
	// ended: but for the finished flag, the pod may be deleted from the API.
	ended bool
	// settled: the copy was found to need no write.
	settled bool
}

// revision is a resource version as a number (guaranteed since Kubernetes 1.35 for every resource):
// of two copies of an object, the copy with the greater revision is newer. A revision of 0 means
// that the resource version is not a number and cannot be compared.
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
		ended:    podrules.Deletable(pod, true) && !awaitsFinalizers(pod),
	}
}

// awaitsFinalizers reports whether the API server deletes the pod by itself once its finalizers are removed,
// such as a Job's: the node, or a user without a grace period, has deleted the pod.
func awaitsFinalizers(pod *v1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return len(pod.Finalizers) > 0 && grace != nil && *grace == 0
}

func (b base) known() bool { return b.status != nil }

// same reports whether this is that very copy.
func (b base) same(other base) bool { return b.status == other.status && b.revision == other.revision }

// supersedes reports whether this copy is newer than trusted, which wins if the two cannot be
// compared.
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

// compact avoids holding a second copy of the status: if the server's answer equals what was written,
// the written status is kept in its place, or the cached one if that is the same. The comparison is
// by patch, which unlike podrules.Equal includes the times of conditions: a base must not hide a
// difference that must be sent.
func (b base) compact(owns podrules.Ownership, uid types.UID, written, cached *v1.PodStatus) base {
	switch {
	case !b.matches(owns, uid, written):
		b.status = b.status.DeepCopy() // and not the whole pod with it
	case len(written.Conditions) == len(cached.Conditions) && b.matches(owns, uid, cached):
		b.status = cached
	default:
		b.status = written
	}
	return b
}

// matches reports whether the base has this status already, so that nothing needs to be sent.
func (b base) matches(owns podrules.Ownership, uid types.UID, status *v1.PodStatus) bool {
	patch, err := owns.Patch(uid, b.status, status)
	return err == nil && patch == nil
}
