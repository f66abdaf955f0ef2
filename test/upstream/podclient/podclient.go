// Package podclient gives a client of statusd's manager to the kubelet's manager, so that both
// can be run against the same API of a test.
package podclient

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/statusd/statusd/status"
)

// Clientset returns a Kubernetes client that implements only get, patch and delete of pods: the
// requests of the kubelet's manager. Any other use is a nil pointer, so that it cannot go
// unnoticed.
func Clientset(client status.Client) kubernetes.Interface { return clientset{client: client} }

type clientset struct {
	kubernetes.Interface
	client status.Client
}

func (c clientset) CoreV1() corev1.CoreV1Interface { return core{client: c.client} }

type core struct {
	corev1.CoreV1Interface
	client status.Client
}

func (c core) Pods(namespace string) corev1.PodInterface {
	return pods{client: c.client, namespace: namespace}
}

type pods struct {
	corev1.PodInterface
	client    status.Client
	namespace string
}

func (p pods) Get(ctx context.Context, name string, _ metav1.GetOptions) (*v1.Pod, error) {
	return p.client.Get(ctx, p.namespace, name)
}

func (p pods) Patch(ctx context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*v1.Pod, error) {
	return p.client.PatchStatus(ctx, p.namespace, name, patch)
}

func (p pods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return p.client.Delete(ctx, p.namespace, name, *options.Preconditions.UID)
}
