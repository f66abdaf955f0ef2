package status

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/statusd/statusd/internal/podapi"
)

// Client sends the manager's requests to the API server. Methods return the server's errors
// unchanged (k8s.io/apimachinery/pkg/api/errors): the manager decides whether a pod that is not
// found is gone, see [Finder]. Methods must not retry or wait for a rate limit: the manager does
// both.
type Client interface {
	// List returns the pods bound to this node, no older than the call: it must not set resource version 0.
	List(ctx context.Context) ([]v1.Pod, error)
	Get(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// PatchStatus sends a strategic merge patch to the pod's status and returns the patched pod.
	// The patch contains the UID as a precondition.
	PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error)
	// Delete deletes the pod without a grace period if it has this UID. An answer that does not come from the API server, such as a 200 of
	// a gateway, must be an error: the manager forgets a pod that is deleted.
	Delete(ctx context.Context, namespace, name string, uid types.UID) error
}

// VersionReader is a Client that can read the newest resource version of the server, see
// [Options.Versions]. The client of [NewClient] is a VersionReader.
type VersionReader interface {
	// ResourceVersion returns the newest resource version of the server's pods.
	ResourceVersion(ctx context.Context) (string, error)
}

// DefaultFieldManager is the name under which the API server records the manager's writes if
// [Options.FieldManager] is not set.
const DefaultFieldManager = "statusd"

// NewClient returns a Client for the pods of a node on top of client-go's, clientset.CoreV1(). The fake
// clientset of client-go works too, but has no resource versions.
//
// A program based on controller-runtime creates the typed client from the config of its manager, so that
// both share one connection:
//
//	core, err := corev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
//
// There is no constructor for controller-runtime's client.Client: that client reads from a cache, while
// the manager needs the stored state, and its option types require the dependency.
//
// The rate limiter of the clientset, 5 requests per second unless its config says otherwise, is not
// used: the limiter is first come, first served, so a pod that loses readiness would wait behind
// all pods that start. The manager has its own limit, see [Options.QPS]. Other users of the same
// clientset stay limited.
func NewClient(core corev1.CoreV1Interface, nodeName string) Client {
	who := identity{nodeName: nodeName, fieldManager: DefaultFieldManager}
	if core == nil {
		return &restClient{identity: who} // refused by New
	}
	if requests, ok := core.RESTClient().(*rest.RESTClient); ok && requests == nil {
		return &typedClient{identity: who, pods: core} // a fake clientset, which makes no requests
	}
	return &restClient{identity: who, core: core.RESTClient()}
}

// identity is for whom the clients of NewClient act.
type identity struct {
	nodeName     string
	fieldManager string
}

// ownClient is a client of NewClient.
type ownClient interface {
	validate() error
	// writingAs returns the client with another name for its writes.
	writingAs(fieldManager string) Client
}

func (c *restClient) writingAs(fieldManager string) Client {
	renamed := *c
	renamed.fieldManager = fieldManager
	return &renamed
}

// unlimited takes the place of the rate limiter of the REST client.
var unlimited = flowcontrol.NewFakeAlwaysRateLimiter()

// validate is asked by [Options.Validate].
func (who identity) validate() error {
	if who.nodeName == "" {
		return errors.New("Client: NewClient was given no node name; it would list the pods that are not bound to any node")
	}
	return nil
}

func (c *restClient) validate() error {
	if c.core == nil {
		return errors.New("Client: NewClient was given a nil client")
	}
	return c.identity.validate()
}

// restClient builds its requests itself, since only so can each go past the rate limiter.
type restClient struct {
	identity
	core rest.Interface
}

func (c *restClient) List(ctx context.Context) ([]v1.Pod, error) {
	var list v1.PodList
	options := &metav1.ListOptions{FieldSelector: podapi.OnNode(c.nodeName)}
	err := c.core.Get().Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		Throttle(unlimited).MaxRetries(0).Do(ctx).Into(&list)
	if err := podapi.Listed(&list, err); err != nil {
		return nil, fmt.Errorf("list pods of node %s: %w", c.nodeName, err)
	}
	return list.Items, nil
}

// ResourceVersion lists pods with a name that no pod has. The empty list carries the resource
// version.
func (c *restClient) ResourceVersion(ctx context.Context) (string, error) {
	var list v1.PodList
	options := &metav1.ListOptions{FieldSelector: podapi.Named(c.nodeName, "-")}
	err := c.core.Get().Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		Throttle(unlimited).MaxRetries(0).Do(ctx).Into(&list)
	if err := podapi.Listed(&list, err); err != nil {
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
	return c.patchStatus(ctx, types.StrategicMergePatchType, namespace, name, patch)
}

func (c *restClient) JSONPatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	return c.patchStatus(ctx, types.JSONPatchType, namespace, name, patch)
}

func (c *restClient) patchStatus(ctx context.Context, kind types.PatchType, namespace, name string, patch []byte) (*v1.Pod, error) {
	pod := &v1.Pod{}
	err := c.core.Patch(kind).Namespace(namespace).Resource("pods").Name(name).
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
	answer, err := c.core.Delete().Namespace(namespace).Resource("pods").Name(name).
		Body(options).Throttle(unlimited).MaxRetries(0).Do(ctx).Get()
	if err == nil {
		err = deletes(answer, uid)
	}
	if err != nil {
		return fmt.Errorf("delete pod: %w", err)
	}
	return nil
}

// deletes returns an error unless the answer is the API server's to the deletion of the pod: the pod, or a Status that names its UID. A gateway may
// answer 200 with another object or with text, although the server has not received the request.
func deletes(answer runtime.Object, uid types.UID) error {
	switch o := answer.(type) {
	case *v1.Pod:
		if o.UID == uid {
			return nil
		}
		return notThePod(o, uid)
	case *metav1.Status:
		if o.Details != nil && o.Details.UID == uid {
			return nil
		}
		return fmt.Errorf("the answer is a Status that does not name the pod with UID %q", uid)
	}
	return fmt.Errorf("the answer is neither the pod with UID %q nor a Status", uid)
}

func (c *restClient) FindPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	var list v1.PodList
	// No resource version: the server must answer with what is stored.
	options := &metav1.ListOptions{FieldSelector: podapi.Named(c.nodeName, name)}
	err := c.core.Get().Namespace(namespace).Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		Throttle(unlimited).MaxRetries(0).Do(ctx).Into(&list)
	if err := podapi.Listed(&list, err); err != nil {
		return nil, fmt.Errorf("list pods of the name: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}
