package notify

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/shutdown"
)

// NotReady writes that a node is shutting down, in the words of the kubelet: Ready is False. A kubelet that runs on
// overwrites it; one that starts again does so too, which ends it. It tries until ctx ends.
func NotReady(ctx context.Context, client kubernetes.Interface, node string) error {
	condition := v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: shutdown.ErrShuttingDown.Error(),
	}
	for try := 1; ; try++ {
		err := nodecondition.Write(ctx, client, node, condition)
		if err == nil || refused(err) || !backoff.Sleep(ctx, retries.Random(try)) {
			return err
		}
	}
}
