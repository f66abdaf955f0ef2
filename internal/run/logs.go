package run

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/view"
)

// containerLogs serves the logs of the containers of a node.
type containerLogs struct{ node *inside.Node }

// Log implements [view.LogSource].
func (l containerLogs) Log(ctx context.Context, uid types.UID, container string, previous bool) ([]string, error) {
	lines, ok := l.node.Log(ctx, uid, container, previous, view.MaxLogLines, view.MaxLogBytes)
	if !ok {
		return nil, view.ErrNoLog
	}
	return lines, nil
}
