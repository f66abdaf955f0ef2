package notify

import (
	"context"
	"errors"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/node/shutdown"
	"github.com/statusd/statusd/internal/nodecondition"
)

// retries space the tries of a request.
var retries = backoff.Schedule{First: 500 * time.Millisecond, Limit: 15 * time.Second}

// NotReady writes that a node is shutting down, in the words of the kubelet: Ready is False. A kubelet that runs on
// overwrites it; one that starts again does so too, which ends it. It tries until ctx ends.
func NotReady(ctx context.Context, client kubernetes.Interface, node string) error {
	condition := v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: shutdown.ErrShuttingDown.Error(),
	}
	for try := 1; ; try++ {
		err := nodecondition.Write(ctx, client, node, condition)
		if err == nil || isRefused(err) || !backoff.Sleep(ctx, retries.Random(try)) {
			return err
		}
	}
}

// isRefused reports whether the API server has answered that it will never take a request.
func isRefused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}
