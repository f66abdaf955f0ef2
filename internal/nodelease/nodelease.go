// Package nodelease finds the writers of a node's lease, which a kubelet creates and renews. Anyone with the right to leases can write it as well. A
// kubelet corrects time and duration at its next renewal, but never the holder.
package nodelease

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultTerm is the term of a lease without a duration.
const DefaultTerm = 40 * time.Second

const kubelet = "kubelet"

// Makers are the names under which the kubelet writes the lease: the owners of its duration and its holder, which are written when the lease is created. If
// the owners differ, another writer has changed a field since, and the kubelet's usual name decides. If neither field has an owner, the creator is unknown.
func Makers(lease *coordinationv1.Lease) map[string]bool {
	makers := map[string]bool{}
	for _, e := range lease.ManagedFields {
		if Owns(e, "f:leaseDurationSeconds") || Owns(e, "f:holderIdentity") {
			makers[e.Manager] = true
		}
	}
	if makers[kubelet] {
		return map[string]bool{kubelet: true}
	}
	return makers
}

// Foreign returns the entry of a writer that owns a field of the lease but has not created the lease, or nil.
func Foreign(lease *coordinationv1.Lease, field string) *metav1.ManagedFieldsEntry {
	makers := Makers(lease)
	for i, e := range lease.ManagedFields {
		if Owns(e, field) && len(makers) > 0 && !makers[e.Manager] && e.Manager != kubelet {
			return &lease.ManagedFields[i]
		}
	}
	return nil
}

// Term is how long a renewal counts. A duration written by another writer than the kubelet is ignored.
func Term(lease *coordinationv1.Lease) time.Duration {
	seconds := lease.Spec.LeaseDurationSeconds
	if seconds == nil || *seconds <= 0 || Foreign(lease, "f:leaseDurationSeconds") != nil {
		return DefaultTerm
	}
	return time.Duration(*seconds) * time.Second
}

// Owns reports whether the writer of an entry owns a field.
func Owns(e metav1.ManagedFieldsEntry, field string) bool {
	return e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"`+field+`"`)
}
