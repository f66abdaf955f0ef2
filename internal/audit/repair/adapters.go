package repair

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/podapi"
)

// ForClient returns the API of a client of the API server, for the pods of a node. ForClient needs the rights to
// get and list pods and to patch pods/status.
func ForClient(client kubernetes.Interface, node string) API { return apiClient{client, node} }

type apiClient struct {
	client kubernetes.Interface
	node   string
}

func (c apiClient) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	return c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (c apiClient) List(ctx context.Context) ([]v1.Pod, error) {
	list, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: podapi.OnNode(c.node)})
	if err := podapi.Listed(list, err); err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (c apiClient) PatchStatus(ctx context.Context, namespace, name string, patch []byte) error {
	_, err := c.client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{FieldManager: audit.RepairManager}, "status")
	return err
}

// RuntimeService is the part of CRI that a repair needs.
type RuntimeService interface {
	StopContainer(ctx context.Context, id string, seconds int64) error
	RemoveContainer(ctx context.Context, id string) error
}

// ForCRI returns the Runtime of a CRI client.
func ForCRI(service RuntimeService) Runtime { return criClient{service} }

type criClient struct{ service RuntimeService }

func (c criClient) Stop(ctx context.Context, id string, grace time.Duration) error {
	return c.service.StopContainer(ctx, id, int64((grace+time.Second-1)/time.Second))
}

func (c criClient) Remove(ctx context.Context, id string) error {
	return c.service.RemoveContainer(ctx, id)
}
