//go:build real

package guardsetup

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/internal/process"
)

// reported are the outputs of a process to the API server, which end with the test.
func reported(t *testing.T, client kubernetes.Interface, node string) []guard.Output {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	keeper := nodecondition.New(nodecondition.Options{Client: client, Node: node, Logger: log})
	events := process.NewEvents(node, client, log)
	outputs := []guard.Output{notify.Condition{Keeper: keeper.Owner(notify.Terms)}, notify.Events{Record: events.NodeEvent}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = keeper.Run(ctx) })
	running.Go(func() { _ = events.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return outputs
}
