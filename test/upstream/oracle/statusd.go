package oracle

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/status"
)

// statusd is statusd's manager on top of statusd's table of pods.
type statusd struct {
	api     *Server
	table   *pods.Table
	manager *status.Manager
	cancel  context.CancelFunc
	done    chan struct{}
}

func newStatusd(s safety) *statusd {
	d := &statusd{api: newServer(), table: pods.New(), done: make(chan struct{})}
	manager, err := status.New(status.Options{Client: statusdClient{d.api}, Pods: d.table, Safety: s, Jitter: repeatable(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(fmt.Sprintf("oracle: options of the manager: %v", err))
	}
	d.manager = manager
	return d
}

// repeatable returns a jitter that is the same in each run, so that a program does the same each time.
func repeatable() func() float64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 1))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}

func (d *statusd) server() *Server { return d.api }

func (d *statusd) start() {
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	go func() {
		defer close(d.done)
		if err := d.manager.Run(ctx); err != nil {
			panic(fmt.Sprintf("oracle: Run returned %v", err))
		}
	}()
}

func (d *statusd) stop() {
	d.cancel()
	<-d.done
}

func (d *statusd) setPod(pod *v1.Pod) {
	d.table.Set(pod)
	d.manager.ObservePod(pod)
}

func (d *statusd) removePod(pod *v1.Pod) { d.table.Remove(pod) }

func (d *statusd) known(uid types.UID) (*v1.Pod, bool) { return d.table.ByUID(uid) }

// The errors of the calls are only logged by the kubelet. Their effects on the pod are compared;
// their texts are not.

func (d *statusd) report(pod *v1.Pod, status v1.PodStatus) bool {
	changed, _ := d.manager.SetPodStatus(pod, status)
	return changed
}

func (d *statusd) ready(uid types.UID, containerID string, ready bool) {
	_ = d.manager.SetContainerReadiness(uid, containerID, ready)
}

func (d *statusd) started(uid types.UID, containerID string, started bool) {
	_ = d.manager.SetContainerStartup(uid, containerID, started)
}

func (d *statusd) terminate(pod *v1.Pod) { _ = d.manager.TerminatePod(pod) }

func (d *statusd) removeOrphans(keep map[types.UID]bool) { d.manager.RemoveOrphanedStatuses(keep) }

func (d *statusd) cached(uid types.UID) (*v1.PodStatus, bool) {
	status, ok := d.manager.GetPodStatus(uid)
	return &status, ok
}

func (d *statusd) resizePending(uid types.UID, reason, message string, generation int64) bool {
	return d.manager.Resizes().SetPodResizePendingCondition(uid, reason, message, generation)
}

func (d *statusd) resizeInProgress(uid types.UID, reason, message string, generation int64) (int64, bool) {
	return d.manager.Resizes().SetPodResizeInProgressCondition(uid, reason, message, generation)
}

func (d *statusd) clearResizePending(uid types.UID) {
	d.manager.Resizes().ClearPodResizePendingCondition(uid)
}

func (d *statusd) clearResizeInProgress(uid types.UID) (int64, bool) {
	return d.manager.Resizes().ClearPodResizeInProgressCondition(uid)
}

func (d *statusd) backfillResize(pods []*v1.Pod) {
	d.manager.Resizes().BackfillPodResizeConditions(pods)
}

func (d *statusd) resizeConditions(uid types.UID) []v1.PodCondition {
	return d.manager.Resizes().GetPodResizeConditions(uid)
}

// statusdClient is the manager's way to its API.
type statusdClient struct{ api *Server }

func (c statusdClient) List(context.Context) ([]v1.Pod, error) { return c.api.List() }

func (c statusdClient) Get(_ context.Context, _, name string) (*v1.Pod, error) {
	return c.api.Get(name)
}

func (c statusdClient) PatchStatus(_ context.Context, _, name string, patch []byte) (*v1.Pod, error) {
	return c.api.PatchStatus(name, patch, nil)
}

func (c statusdClient) Delete(_ context.Context, _, name string, uid types.UID) error {
	return c.api.Delete(name, uid)
}
