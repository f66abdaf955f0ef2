// Package podapi has the common code of packages that write pods to the API: how a node selects its
// pods, and how it verifies that a pod is gone.
package podapi

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// OnNode returns the field selector of all pods of a node. The Node authorizer refuses lists
// and watches of pods without it.
func OnNode(nodeName string) string {
	return fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
}

// Bound returns the field selector of the pods that are bound to a node.
func Bound() string { return fields.OneTermNotEqualSelector("spec.nodeName", "").String() }

// Named returns the field selector of the pods of a node that have this name.
func Named(nodeName, name string) string {
	return fields.Set{"spec.nodeName": nodeName, "metadata.name": name}.String()
}

// Listed returns an error if the answer to a LIST is not a list. A gateway may answer 200 with another object, such as a Status, which
// client-go decodes as an empty list: all pods would seem to be gone.
func Listed(list metav1.ListInterface, err error) error {
	if err == nil && list.GetResourceVersion() == "" {
		return errors.New("the answer is not a list: it has no resource version")
	}
	return err
}

// ConfirmGone returns an error unless the pod is gone, as the answer "not found" to its deletion
// suggests. NodeRestriction answers a node's delete from its own cache and finds no pod until that
// cache is filled, for a while after each start of the API server. A get would prove nothing
// either, because the Node authorizer has such a cache too. A list of the node's pods is read from
// storage. The function list must list the pods of the pod's namespace.
func ConfirmGone(ctx context.Context, nodeName, name string, uid types.UID,
	list func(context.Context, metav1.ListOptions) (*v1.PodList, error)) error {
	found, err := list(ctx, metav1.ListOptions{FieldSelector: Named(nodeName, name)})
	if err := Listed(found, err); err != nil {
		return fmt.Errorf("confirm that the pod is gone: %w", err)
	}
	for i := range found.Items {
		if found.Items[i].UID == uid {
			return errors.New("the deletion was answered as if the pod were gone, although it is there; the admission of the API server may lag behind")
		}
	}
	return nil
}
