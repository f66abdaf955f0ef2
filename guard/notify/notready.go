package notify

import (
	"context"
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/shutdown"
)

// NotReady writes that a node is shutting down, in the words of the kubelet: Ready is False. A kubelet that runs on
// overwrites it; one that starts again does so too, which ends it. It tries until ctx ends.
func NotReady(ctx context.Context, client kubernetes.Interface, node string) error {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{{
		Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: shutdown.ErrShuttingDown.Error(),
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		_, err := client.CoreV1().Nodes().Patch(limited, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		cancel()
		if err == nil || refused(err) || !backoff.Sleep(ctx, retries.Random(try)) {
			return err
		}
	}
}
