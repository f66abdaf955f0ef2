package nodecondition

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// requestTimeout is how long one request may take.
const requestTimeout = 10 * time.Second

// target is a Node whose conditions are patched.
type target struct {
	client kubernetes.Interface
	node   string
}

// patch changes conditions and returns the Node as it is then. Without changes it only reads. If uid is set, a Node
// that has another one is not changed.
func (t target) patch(ctx context.Context, uid types.UID, changes ...any) (*v1.Node, error) {
	body := map[string]any{}
	if uid != "" {
		body["metadata"] = map[string]any{"uid": uid}
	}
	if len(changes) > 0 {
		body["status"] = map[string]any{"conditions": changes}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	node, err := t.client.CoreV1().Nodes().Patch(ctx, t.node, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("patch conditions of node %s: %w", t.node, err)
	}
	return node, nil
}

// Write writes a condition once, in one request, whatever its state was. The current time becomes its
// transition time.
func Write(ctx context.Context, client kubernetes.Interface, node string, condition v1.NodeCondition) error {
	condition.LastHeartbeatTime = metav1.Now()
	condition.LastTransitionTime = condition.LastHeartbeatTime
	_, err := target{client, node}.patch(ctx, "", condition)
	return err
}
