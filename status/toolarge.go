package status

import (
	"encoding/json"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// tooLarge reports whether a write was refused because of the size of the request, or of the pod with it:
// the server takes requests of 3 MiB, its etcd objects of 1.5 MiB by default, and a proxy before the server may take less.
// The refusal of etcd is a 500, which only its text tells from a server that fails.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || err != nil && fromServer(err) && apierrors.IsInternalError(err) &&
		(strings.Contains(err.Error(), "etcdserver: request is too large") || strings.Contains(err.Error(), "trying to send message larger than max"))
}

// smallPart is the size in bytes below which it does not help to leave a part of a status out.
const smallPart = 4 << 10

// largestPart returns the largest part of a status that can be left out and is not, as refusedFields
// names it. It is empty if none is large.
func largestPart(status *v1.PodStatus, leftOut []string) []string {
	parts := map[string]any{
		"containerStatuses":          status.ContainerStatuses,
		"initContainerStatuses":      status.InitContainerStatuses,
		"ephemeralContainerStatuses": status.EphemeralContainerStatuses,
		"resourceClaimStatuses":      status.ResourceClaimStatuses,
		"message":                    status.Message,
	}
	for i := range status.Conditions {
		parts["conditions["+string(status.Conditions[i].Type)+"]"] = status.Conditions[i]
	}
	largest, size := []string(nil), smallPart
	for name, part := range parts {
		if slices.Contains(leftOut, name) {
			continue
		}
		if encoded, err := json.Marshal(part); err == nil && len(encoded) > size {
			largest, size = []string{name}, len(encoded)
		}
	}
	return largest
}
