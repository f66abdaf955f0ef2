package status

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/statusd/statusd/internal/podapi"
)

// Client is what the manager asks of the API server. Errors are those of
// k8s.io/apimachinery/pkg/api/errors, as the server gave them: whether a pod that is not found
// is gone is decided by the manager, see [Finder]. A method does not retry and does not wait
// for a rate limit: the manager does both.
type Client interface {
	// List returns the pods bound to this node.
	List(ctx context.Context) ([]v1.Pod, error)
	Get(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// PatchStatus sends a strategic merge patch to the pod's status and returns the pod
	// as it is then. The patch names the UID that the pod must have.
	PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error)
	// Delete removes the pod at once if it has this UID.
	Delete(ctx context.Context, namespace, name string, uid types.UID) error
}

// VersionReader is a Client that can read the newest resource version of the server. The manager
// calls it while nothing else shows that version, to notice that the server was
// restored from a backup. The client of [NewClient] is one.
type VersionReader interface {
	// ResourceVersion returns the newest resource version of the server's pods.
	ResourceVersion(ctx context.Context) (string, error)
}

// DefaultFieldManager is the name under which the API server records the manager's writes if
// [Options.FieldManager] is not set.
const DefaultFieldManager = "statusd"

// NewClient returns a Client for the pods of a node on top of a client-go REST client,
// such as clientset.CoreV1().RESTClient().
//
// The rate limiter of the REST client, 5 requests per second unless its config says otherwise, is
// not used: it is first come first served, so a pod that loses readiness would wait behind all pods
// that start. The manager has a limit of its own, see [Options.QPS]. Other users of the
// same clientset stay limited.
func NewClient(core rest.Interface, nodeName string) Client {
	return &restClient{core: core, nodeName: nodeName, fieldManager: DefaultFieldManager}
}

// writingAs returns the client with another name for its writes.
func (c *restClient) writingAs(fieldManager string) Client {
	renamed := *c
	renamed.fieldManager = fieldManager
	return &renamed
}

// unlimited takes the place of the rate limiter of the REST client.
var unlimited = flowcontrol.NewFakeAlwaysRateLimiter()

// validate is asked by [Options.Validate].
func (c *restClient) validate() error {
	if c.nodeName == "" {
		return errors.New("Client: NewClient was given no node name; it would list the pods that are not bound to any node")
	}
	return nil
}

type restClient struct {
	core         rest.Interface
	nodeName     string
	fieldManager string
}

func (c *restClient) List(ctx context.Context) ([]v1.Pod, error) {
	var list v1.PodList
	// Resource version 0 lets the server answer from its cache.
	options := &metav1.ListOptions{FieldSelector: podapi.OnNode(c.nodeName), ResourceVersion: "0"}
	err := c.core.Get().Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		Throttle(unlimited).MaxRetries(0).Do(ctx).Into(&list)
	if err != nil {
		return nil, fmt.Errorf("list pods of node %s: %w", c.nodeName, err)
	}
	return list.Items, nil
}

// ResourceVersion lists no pods: no pod has this name. The answer carries the version all the same.
func (c *restClient) ResourceVersion(ctx context.Context) (string, error) {
	var list v1.PodList
	options := &metav1.ListOptions{FieldSelector: podapi.Named(c.nodeName, "-")}
	err := c.core.Get().Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		Throttle(unlimited).MaxRetries(0).Do(ctx).Into(&list)
	if err != nil {
		return "", fmt.Errorf("ask for the resource version: %w", err)
	}
	return list.ResourceVersion, nil
}

func (c *restClient) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	err := c.core.Get().Namespace(namespace).Resource("pods").Name(name).
		Throttle(unlimited).MaxRetries(0).Do(ctx).Into(pod)
	if err != nil {
		return nil, fmt.Errorf("get pod: %w", err)
	}
	return pod, nil
}

func (c *restClient) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	pod := &v1.Pod{}
	err := c.core.Patch(types.StrategicMergePatchType).Namespace(namespace).Resource("pods").Name(name).
		SubResource("status").VersionedParams(&metav1.PatchOptions{FieldManager: c.fieldManager}, scheme.ParameterCodec).
		Body(patch).Throttle(unlimited).MaxRetries(0).Do(ctx).Into(pod)
	if err != nil {
		return nil, fmt.Errorf("patch pod status: %w", err)
	}
	return pod, nil
}

func (c *restClient) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(uid))
	err := c.core.Delete().Namespace(namespace).Resource("pods").Name(name).
		Body(options).Throttle(unlimited).MaxRetries(0).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("delete pod: %w", err)
	}
	return nil
}

func (c *restClient) FindPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	var list v1.PodList
	// No resource version: the server must answer with what is stored.
	options := &metav1.ListOptions{FieldSelector: podapi.Named(c.nodeName, name)}
	err := c.core.Get().Namespace(namespace).Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		Throttle(unlimited).MaxRetries(0).Do(ctx).Into(&list)
	if err != nil {
		return nil, fmt.Errorf("list pods of the name: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}
