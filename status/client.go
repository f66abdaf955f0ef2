package status

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Client is what the manager asks of the API server. Errors are those of
// k8s.io/apimachinery/pkg/api/errors. A method does not retry and does not wait for a
// rate limit: the manager does both.
type Client interface {
	// List returns the pods bound to this node.
	List(ctx context.Context) ([]v1.Pod, error)
	Get(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// PatchStatus sends a strategic merge patch to the pod's status and returns the pod
	// as it is then. The patch names the UID that the pod must have.
	PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error)
	// Delete removes the pod at once if it has this UID. The answer that it is not found
	// must be true, because the manager then forgets the pod: see [NewClient].
	Delete(ctx context.Context, namespace, name string, uid types.UID) error
}

// VersionReader is a Client that can tell the version which the server's history has reached.
// The manager asks it now and then while nothing else tells, to notice that the server was
// restored from a backup. The client of [NewClient] is one.
type VersionReader interface {
	// ResourceVersion returns the newest resource version of the server's pods.
	ResourceVersion(ctx context.Context) (string, error)
}

// FieldManager is the name under which the API server records the manager's writes.
const FieldManager = "statusd"

// NewClient returns a Client for the pods of a node on top of a client-go REST client,
// such as clientset.CoreV1().RESTClient(). Its rate limiter should be off
// (rest.Config.QPS below zero): the manager has its own, see [Options.QPS]. It takes no 404
// for the end of a pod that the API server still lists.
func NewClient(core rest.Interface, nodeName string) Client {
	return &restClient{core: core, nodeName: nodeName}
}

type restClient struct {
	core     rest.Interface
	nodeName string
}

func (c *restClient) List(ctx context.Context) ([]v1.Pod, error) {
	var list v1.PodList
	// Resource version 0 lets the server answer from its cache.
	options := &metav1.ListOptions{FieldSelector: "spec.nodeName=" + c.nodeName, ResourceVersion: "0"}
	err := c.core.Get().Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		MaxRetries(0).Do(ctx).Into(&list)
	if err != nil {
		return nil, fmt.Errorf("list pods of node %s: %w", c.nodeName, err)
	}
	return list.Items, nil
}

// ResourceVersion lists no pods: no pod has this name. The server tells its version all the same.
func (c *restClient) ResourceVersion(ctx context.Context) (string, error) {
	var list v1.PodList
	options := &metav1.ListOptions{FieldSelector: fields.Set{"spec.nodeName": c.nodeName, "metadata.name": "-"}.String()}
	err := c.core.Get().Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		MaxRetries(0).Do(ctx).Into(&list)
	if err != nil {
		return "", fmt.Errorf("ask for the resource version: %w", err)
	}
	return list.ResourceVersion, nil
}

func (c *restClient) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	err := c.core.Get().Namespace(namespace).Resource("pods").Name(name).
		MaxRetries(0).Do(ctx).Into(pod)
	if err != nil {
		return nil, fmt.Errorf("get pod: %w", err)
	}
	return pod, nil
}

func (c *restClient) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	pod := &v1.Pod{}
	err := c.core.Patch(types.StrategicMergePatchType).Namespace(namespace).Resource("pods").Name(name).
		SubResource("status").VersionedParams(&metav1.PatchOptions{FieldManager: FieldManager}, scheme.ParameterCodec).
		Body(patch).MaxRetries(0).Do(ctx).Into(pod)
	if err != nil {
		return nil, fmt.Errorf("patch pod status: %w", err)
	}
	return pod, nil
}

func (c *restClient) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(uid))
	err := c.core.Delete().Namespace(namespace).Resource("pods").Name(name).
		Body(options).MaxRetries(0).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		if err := c.confirmGone(ctx, namespace, name, uid); err != nil {
			return fmt.Errorf("delete pod: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("delete pod: %w", err)
	}
	return nil
}

func (c *restClient) confirmGone(ctx context.Context, namespace, name string, uid types.UID) error {
	return ConfirmGone(ctx, c.nodeName, name, uid, func(ctx context.Context, options metav1.ListOptions) (*v1.PodList, error) {
		list := &v1.PodList{}
		err := c.core.Get().Namespace(namespace).Resource("pods").VersionedParams(&options, scheme.ParameterCodec).
			MaxRetries(0).Do(ctx).Into(list)
		return list, err
	})
}

// ConfirmGone looks whether a pod is as gone as the answer "not found" to its deletion says,
// and returns an error if it is still there. The API server's NodeRestriction answers a
// node's delete out of a cache of its own, and finds no pod until that is filled: for a while
// after each start of the server. To get the pod would be no proof either, because the Node
// authorizer has such a cache too; a list of the node's pods is read from what is stored.
// The function list must list the pods of the pod's namespace.
func ConfirmGone(ctx context.Context, nodeName, name string, uid types.UID,
	list func(context.Context, metav1.ListOptions) (*v1.PodList, error)) error {
	found, err := list(ctx, metav1.ListOptions{FieldSelector: fields.Set{"spec.nodeName": nodeName, "metadata.name": name}.String()})
	if err != nil {
		return fmt.Errorf("look whether it is gone: %w", err)
	}
	for i := range found.Items {
		if found.Items[i].UID == uid {
			return errors.New("the API server does not find it, although it is there; its admission may lag behind")
		}
	}
	return nil
}
