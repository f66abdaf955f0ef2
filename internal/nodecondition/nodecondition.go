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

// DefaultHeartbeat is how often a condition that does not change is written.
const DefaultHeartbeat = 5 * time.Minute

const (
	// pause is the least time between the writes of two changes.
	pause = 2 * time.Second
	// settle is how long conditions from before the start are kept, until the owners have set their current
	// ones.
	settle = 30 * time.Second
	// removeTimeout bounds how long an end in order waits for an API server that does not answer.
	removeTimeout = 2 * time.Second
)

// retries space the tries of a write.
var retries = backoff.Schedule{First: 500 * time.Millisecond, Limit: 15 * time.Second}

// Options are whose conditions are kept. Client, Node and Logger are required.
type Options struct {
	Client kubernetes.Interface
	Node   string
	Logger *slog.Logger
	// Claimed is closed when the Node is this process's to write: see node.Claimed. Nil: it is.
	Claimed <-chan struct{}
}

// Terms are how the conditions of an owner are kept.
type Terms struct {
	// Heartbeat is how often conditions are written that do not change; 5 minutes if 0. A Node that was created
	// again has them again then, and an old heartbeat shows that no process keeps them any more. The shortest of all
	// owners counts.
	Heartbeat time.Duration
	// MessageDelay is how long a message that changes alone waits, for messages that change often.
	MessageDelay time.Duration
	// RemoveAtEnd removes the conditions when Run ends, since a stale condition must not be taken for a verdict.
	// Otherwise they stay: a restart is no event in the life of the node.
	RemoveAtEnd bool
	// Prefix is the prefix of this owner's condition types, if no other owner has the prefix: conditions
	// that are not set within half a minute after the start of Run are left over from an earlier process,
	// and are removed.
	Prefix string
	// Before is called from Run before each write, for owners that set conditions only then; nil: nothing is.
	Before func()
}

// Keeper keeps the conditions of a Node that the parts of a process own, by one request for all. Make it with [New].
type Keeper struct {
	o        Options
	target   target
	woken    chan struct{}      // of capacity 1: something must be written
	reworded chan time.Duration // of capacity 1: a message alone has changed, and may wait so long
	owners   []*Owner           // not changed once Run was called

	mu     sync.Mutex                                 // guards what follows
	wanted map[v1.NodeConditionType]*v1.NodeCondition // nil: to be removed
	owed   []func()                                   // to be called once all conditions are written
	fades  map[v1.NodeConditionType]bool              // types that are removed at the end

	// Of Run alone.
	begin   time.Time
	looked  time.Time                     // when all was last found or made as it should be
	node    *v1.Node                      // the answer to the last request; nil: not known
	touched map[v1.NodeConditionType]bool // types that may have been written
}

// New makes a keeper. New writes nothing before Run.
func New(o Options) *Keeper {
	return &Keeper{
		o: o, target: target{o.Client, o.Node}, woken: make(chan struct{}, 1), reworded: make(chan time.Duration, 1),
		wanted: map[v1.NodeConditionType]*v1.NodeCondition{}, touched: map[v1.NodeConditionType]bool{}, fades: map[v1.NodeConditionType]bool{},
	}
}

// Owner sets conditions of the types that are its own. Its methods may be called from any goroutine.
type Owner struct {
	terms Terms
	*Keeper
}

// Owner adds an owner. Owner must be called before Run.
func (k *Keeper) Owner(terms Terms) *Owner {
	terms.Heartbeat = cmp.Or(terms.Heartbeat, DefaultHeartbeat)
	o := &Owner{terms, k}
	k.owners = append(k.owners, o)
	return o
}

// Owned reports whether there is an owner.
func (k *Keeper) Owned() bool { return len(k.owners) > 0 }

// Set sets conditions: their types, statuses, reasons and messages, which are cut to 1 KiB. Earlier conditions
// that are not in the list stay as they are. Set returns at once.
func (o *Owner) Set(conditions ...v1.NodeCondition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range conditions {
		c.Message = bounded(c.Message)
		before := o.wanted[c.Type]
		o.wanted[c.Type], o.fades[c.Type] = &c, o.terms.RemoveAtEnd
		switch {
		case before == nil || !sameStatus(*before, c):
			wake.Up(o.woken)
		case before.Message != c.Message && o.terms.MessageDelay > 0:
			select {
			case o.reworded <- o.terms.MessageDelay:
			default: // another one waits, and all are written with it
			}
		case before.Message != c.Message:
			wake.Up(o.woken)
		}
	}
}

// Remove removes a condition. Remove returns at once.
func (o *Owner) Remove(kind v1.NodeConditionType) {
	o.mu.Lock()
	o.wanted[kind] = nil
	o.mu.Unlock()
	wake.Up(o.woken)
}

// Then triggers a check of the Node, and calls done, from Run, once the Node has all earlier changes. A done of nil
// is not called. Then returns at once.
func (o *Owner) Then(done func()) {
	if done != nil {
		o.mu.Lock()
		o.owed = append(o.owed, done)
		o.mu.Unlock()
	}
	wake.Up(o.woken)
}

// Run writes the conditions until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	if k.o.Claimed != nil {
		select {
		case <-k.o.Claimed:
		case <-ctx.Done():
			return nil
		}
	}
	defer k.removeFading(context.WithoutCancel(ctx))
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

// wait waits until something may have to be written: because it has changed, or as a heartbeat. wait also reports
// whether ctx lasts.
func (k *Keeper) wait(ctx context.Context) (changed, lasts bool) {
	due := k.looked.Add(k.heartbeat())
	if settled := k.begin.Add(settle); len(k.prefixes()) > 0 && time.Now().Before(settled) && settled.Before(due) {
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
		case delay := <-k.reworded:
			if soon := time.Now().Add(delay); soon.Before(due) {
				due = soon
				timer.Reset(delay)
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

// want returns the desired conditions of the Node, and the functions to call once they are written.
func (k *Keeper) want() (want goal, owed []func()) {
	k.mu.Lock()
	owed, k.owed = k.owed, nil
	k.mu.Unlock()
	for _, o := range k.owners {
		if o.terms.Before != nil {
			o.terms.Before() // after owed was taken, so that nothing is done that is not part of this write
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	want = goal{conditions: maps.Clone(k.wanted), heartbeat: k.heartbeat()}
	if time.Since(k.begin) >= settle {
		want.prefixes = k.prefixes()
	}
	return want, owed
}

// heartbeat is the shortest of all owners.
func (k *Keeper) heartbeat() time.Duration {
	shortest := DefaultHeartbeat
	for _, o := range k.owners {
		shortest = min(shortest, o.terms.Heartbeat)
	}
	return shortest
}

// prefixes are what the types of owners begin with that alone have such.
func (k *Keeper) prefixes() (all []string) {
	for _, o := range k.owners {
		if o.terms.Prefix != "" {
			all = append(all, o.terms.Prefix)
		}
	}
	return all
}

// reach makes the conditions of the Node those wanted.
func (k *Keeper) reach(ctx context.Context, want goal) (err error) {
	if len(want.conditions) == 0 && len(want.prefixes) == 0 {
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

// removeFading removes conditions of owners with RemoveAtEnd, including conditions from a request whose answer was
// lost.
func (k *Keeper) removeFading(ctx context.Context) {
	var changes []any
	k.mu.Lock()
	for _, kind := range slices.Sorted(maps.Keys(k.touched)) {
		if k.fades[kind] {
			changes = append(changes, removal(kind))
		}
	}
	k.mu.Unlock()
	if len(changes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if _, err := k.target.patch(ctx, "", changes...); err != nil && !apierrors.IsNotFound(err) {
		k.o.Logger.Warn("conditions of the node not removed; their heartbeats show that they are old", "node", k.o.Node, "err", err)
	}
}
