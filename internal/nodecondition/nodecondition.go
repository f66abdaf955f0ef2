// Package nodecondition keeps conditions of a Node as they are wanted, and leaves all others alone.
package nodecondition

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
)

const (
	// heartbeat is how often conditions are written that do not change. A Node that was created again has
	// them again then.
	heartbeat = 5 * time.Minute
	// pause is the least time between two writes.
	pause          = 2 * time.Second
	requestTimeout = 10 * time.Second
	maxMessage     = 1024
)

var retries = backoff.Schedule{First: pause, Limit: 30 * time.Second}

// Keeper keeps conditions of a Node. Make it with [New]; its methods may be called from any goroutine.
type Keeper struct {
	client kubernetes.Interface
	node   string
	log    *slog.Logger
	woken  chan struct{} // of capacity 1

	mu     sync.Mutex // guards wanted
	wanted map[v1.NodeConditionType]v1.NodeCondition
}

// New makes a keeper. It writes nothing before Run.
func New(client kubernetes.Interface, node string, log *slog.Logger) *Keeper {
	return &Keeper{client: client, node: node, log: log, woken: make(chan struct{}, 1), wanted: map[v1.NodeConditionType]v1.NodeCondition{}}
}

// Set takes what the conditions should be: their types, statuses, reasons and messages. Those that were set
// before and are not among them stay as they are. It returns at once.
func (k *Keeper) Set(conditions ...v1.NodeCondition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conditions {
		if len(c.Message) > maxMessage {
			c.Message = strings.ToValidUTF8(c.Message[:maxMessage], "")
		}
		before, known := k.wanted[c.Type]
		if k.wanted[c.Type] = c; !known || !same(before, c) {
			wake.Up(k.woken)
		}
	}
}

func same(a, b v1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// Run writes the conditions until ctx ends. They stay then: a restart is no event in the life of the node.
func (k *Keeper) Run(ctx context.Context) error {
	for failures := 0; ; {
		timer := time.NewTimer(heartbeat)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-k.woken:
		case <-timer.C:
		}
		timer.Stop()
		wait := pause
		if err := k.write(ctx); err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			if failures++; failures == 1 {
				k.log.Warn("conditions of the node not written, will retry", "err", err)
			}
			wait = retries.Random(failures)
			wake.Up(k.woken)
		}
		if !backoff.Sleep(ctx, wait) {
			return nil
		}
	}
}

// write reads the Node and patches what is not as it should be.
func (k *Keeper) write(ctx context.Context) error {
	k.mu.Lock()
	wanted := maps.Clone(k.wanted)
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	changes := plan(wanted, node.Status.Conditions, metav1.NewTime(time.Now().Truncate(time.Second)))
	if len(changes) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": node.UID}, "status": map[string]any{"conditions": changes}})
	if err != nil {
		return err
	}
	if _, err := k.client.CoreV1().Nodes().Patch(ctx, k.node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("patch conditions of node %s: %w", k.node, err)
	}
	return nil
}

// plan are the conditions that must be written: those that are not as they should be, and those whose last
// heartbeat is old. The time of a transition stays while the status does.
func plan(wanted map[v1.NodeConditionType]v1.NodeCondition, have []v1.NodeCondition, now metav1.Time) (changes []v1.NodeCondition) {
	for _, kind := range slices.Sorted(maps.Keys(wanted)) {
		next := wanted[kind]
		next.LastHeartbeatTime, next.LastTransitionTime = now, now
		i := slices.IndexFunc(have, func(c v1.NodeCondition) bool { return c.Type == kind })
		if i >= 0 && have[i].Status == next.Status {
			age := now.Sub(have[i].LastHeartbeatTime.Time)
			if same(have[i], next) && age >= 0 && age < heartbeat {
				continue
			}
			next.LastTransitionTime = have[i].LastTransitionTime
		}
		changes = append(changes, next)
	}
	return changes
}
