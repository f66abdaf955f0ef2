package status

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/statusd/statusd/internal/podapi"
)

// typedClient is the client for a fake clientset, which has no REST client to build requests with.
type typedClient struct {
	identity
	pods corev1.PodsGetter
}

func (c *typedClient) writingAs(fieldManager string) Client {
	renamed := *c
	renamed.fieldManager = fieldManager
	return &renamed
}

func (c *typedClient) List(ctx context.Context) ([]v1.Pod, error) {
	list, err := c.pods.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: podapi.OnNode(c.nodeName)})
	if err != nil {
		return nil, fmt.Errorf("list pods of node %s: %w", c.nodeName, err)
	}
	// The fake clientset knows no field selectors.
	return slices.DeleteFunc(list.Items, func(pod v1.Pod) bool { return pod.Spec.NodeName != c.nodeName }), nil
}

func (c *typedClient) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	pod, err := c.pods.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get pod: %w", err)
	}
	return pod, nil
}

func (c *typedClient) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	options := metav1.PatchOptions{FieldManager: c.fieldManager}
	pod, err := c.pods.Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, options, "status")
	if err != nil {
		return nil, fmt.Errorf("patch pod status: %w", err)
	}
	return pod, nil
}

func (c *typedClient) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(uid))
	if err := c.pods.Pods(namespace).Delete(ctx, name, *options); err != nil {
		return fmt.Errorf("delete pod: %w", err)
	}
	return nil
}
