package nodecondition

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
)

const (
	defaultHeartbeat = 5 * time.Minute
	// pause is the least time between the writes of two changes.
	pause = 2 * time.Second
	// settle is how long conditions from before the start are left, until those that are still due are set.
	settle = 30 * time.Second
	// removeTimeout bounds how long an end in order waits for an API server that does not answer.
	removeTimeout = 2 * time.Second
)

// retries space the tries of a write.
var retries = backoff.Schedule{First: 500 * time.Millisecond, Limit: 15 * time.Second}

// Options are how conditions are kept. Client, Node and Logger are required.
type Options struct {
	Client kubernetes.Interface
	Node   string
	Logger *slog.Logger
	// Heartbeat is how often conditions are written that do not change; 5 minutes if 0. A Node that was created
	// again has them again then, and an old heartbeat shows that no process keeps them any more.
	Heartbeat time.Duration
	// MessageDelay is how long a message that changes alone waits, for messages that change often.
	MessageDelay time.Duration
	// RemoveAtEnd removes the conditions when Run ends, since what is no longer looked at must not be taken for a
	// verdict. Otherwise they stay: a restart is no event in the life of the node.
	RemoveAtEnd bool
	// Prefix is what the types of this keeper begin with, if it alone has such: those that are not set half a
	// minute after the start of Run are from before, and are removed.
	Prefix string
	// Before is called from Run before each write, for callers that set conditions only then; nil: nothing is.
	Before func()
}

// Keeper keeps conditions of a Node. Make it with [New]; its methods may be called from any goroutine.
type Keeper struct {
	o        Options
	target   target
	woken    chan struct{} // of capacity 1: something must be written
	reworded chan struct{} // of capacity 1: a message alone has changed

	mu     sync.Mutex                                 // guards what follows
	wanted map[v1.NodeConditionType]*v1.NodeCondition // nil: to be removed
	owed   []func()                                   // to be called once all of it is written

	// Of Run alone.
	begin   time.Time
	looked  time.Time                     // when all was last found or made as it should be
	node    *v1.Node                      // the answer to the last request; nil: not known
	touched map[v1.NodeConditionType]bool // types that may have been written
}

// New makes a keeper. It writes nothing before Run.
func New(o Options) *Keeper {
	o.Heartbeat = cmp.Or(o.Heartbeat, defaultHeartbeat)
	return &Keeper{
		o: o, target: target{o.Client, o.Node}, woken: make(chan struct{}, 1), reworded: make(chan struct{}, 1),
		wanted: map[v1.NodeConditionType]*v1.NodeCondition{}, touched: map[v1.NodeConditionType]bool{},
	}
}

// Set takes what the conditions should be: their types, statuses, reasons and messages, which are cut to 1 KiB.
// Those that were set before and are not among them stay as they are. It returns at once.
func (k *Keeper) Set(conditions ...v1.NodeCondition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conditions {
		c.Message = bounded(c.Message)
		before := k.wanted[c.Type]
		k.wanted[c.Type] = &c
		switch {
		case before == nil || !sameStatus(*before, c):
			wake.Up(k.woken)
		case before.Message != c.Message && k.o.MessageDelay > 0:
			wake.Up(k.reworded)
		case before.Message != c.Message:
			wake.Up(k.woken)
		}
	}
}

// Remove removes a condition. It returns at once.
func (k *Keeper) Remove(kind v1.NodeConditionType) {
	k.mu.Lock()
	k.wanted[kind] = nil
	k.mu.Unlock()
	wake.Up(k.woken)
}

// Then has the Node looked at, and calls done, from Run, once it has what was set and removed before. A done of nil
// is not called. It returns at once.
func (k *Keeper) Then(done func()) {
	if done != nil {
		k.mu.Lock()
		k.owed = append(k.owed, done)
		k.mu.Unlock()
	}
	wake.Up(k.woken)
}

// Run writes the conditions until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	if k.o.RemoveAtEnd {
		defer k.removeAll(context.WithoutCancel(ctx))
	}
	k.begin = time.Now()
	k.looked = k.begin
	for failures := 0; ; {
		changed, lasts := k.wait(ctx)
		if !lasts {
			return nil
		}
		next := time.Duration(0)
		if changed {
			next = pause
		}
		if err := k.write(ctx); err == nil {
			failures, k.looked = 0, time.Now()
		} else if ctx.Err() == nil {
			if failures++; failures == 1 {
				k.o.Logger.Warn("conditions of the node not written, will retry", "node", k.o.Node, "err", err)
			}
			next = retries.Random(failures)
			wake.Up(k.woken)
		}
		if !backoff.Sleep(ctx, next) {
			return nil
		}
	}
}

// wait waits until something may have to be written: because it has changed, or as a heartbeat. It also reports
// whether ctx lasts.
func (k *Keeper) wait(ctx context.Context) (changed, lasts bool) {
	due := k.looked.Add(k.o.Heartbeat)
	if settled := k.begin.Add(settle); k.o.Prefix != "" && time.Now().Before(settled) && settled.Before(due) {
		due = settled
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, false
		case <-k.woken:
			return true, true
		case <-timer.C:
			return false, true
		case <-k.reworded:
			if soon := time.Now().Add(k.o.MessageDelay); soon.Before(due) {
				due = soon
				timer.Reset(k.o.MessageDelay)
			}
		}
	}
}

// write brings the Node up to date.
func (k *Keeper) write(ctx context.Context) error {
	want, owed := k.want()
	if err := k.reach(ctx, want); err != nil {
		k.node = nil // it may be another one, or have been changed
		k.mu.Lock()
		k.owed = append(owed, k.owed...)
		k.mu.Unlock()
		return err
	}
	k.mu.Lock()
	for kind, c := range want.conditions {
		if c == nil && k.wanted[kind] == nil {
			delete(k.wanted, kind)
		}
	}
	k.mu.Unlock()
	for _, done := range owed {
		done()
	}
	return nil
}

// want is what the Node should have, and what is owed once it does.
func (k *Keeper) want() (want goal, owed []func()) {
	k.mu.Lock()
	owed, k.owed = k.owed, nil
	k.mu.Unlock()
	if k.o.Before != nil {
		k.o.Before() // after owed was taken, so that nothing is done that is not part of this write
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	want = goal{conditions: maps.Clone(k.wanted), heartbeat: k.o.Heartbeat}
	if time.Since(k.begin) >= settle {
		want.prefix = k.o.Prefix
	}
	return want, owed
}

// reach makes the conditions of the Node those wanted.
func (k *Keeper) reach(ctx context.Context, want goal) (err error) {
	if len(want.conditions) == 0 && want.prefix == "" {
		return nil
	}
	if k.node == nil {
		if k.node, err = k.target.patch(ctx, ""); err != nil {
			return err
		}
	}
	changes := want.plan(k.node.Status.Conditions, time.Now())
	if len(changes) == 0 {
		return nil
	}
	for kind, c := range want.conditions {
		if c != nil {
			k.touched[kind] = true
		}
	}
	k.node, err = k.target.patch(ctx, k.node.UID, changes...)
	return err
}

// removeAll removes what may have been written, also by a request whose answer was lost.
func (k *Keeper) removeAll(ctx context.Context) {
	var changes []any
	for _, kind := range slices.Sorted(maps.Keys(k.touched)) {
		changes = append(changes, removal(kind))
	}
	if len(changes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if _, err := k.target.patch(ctx, "", changes...); err != nil && !apierrors.IsNotFound(err) {
		k.o.Logger.Warn("conditions of the node not removed; their heartbeats show that they are old", "node", k.o.Node, "err", err)
	}
}
