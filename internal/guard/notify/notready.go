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

// NotReady sets the Node's condition Ready to False, with the kubelet's message for a node that is shutting down. A
// kubelet that runs on or starts again overwrites the condition. NotReady retries until ctx ends.
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

// isRefused reports whether the API server has rejected a request for good.
func isRefused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}
