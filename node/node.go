package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/instant"
)

const requestTimeout = 10 * time.Second

// retrySchedule spaces the attempts of a failed request.
var retrySchedule = backoff.Schedule{First: 200 * time.Millisecond, Limit: 10 * time.Second}

var errRunTwice = errors.New("node: Run may be called only once")

// ErrDeleted is returned by [Node.Err] after the Node was deleted from the API. The next start of the program
// registers the Node again, as with the kubelet.
var ErrDeleted = errors.New("node: the Node was deleted from the API; restart to register it again")

// Node maintains the Node object and the lease of this machine. See the package comment.
type Node struct {
	o   Options
	log *slog.Logger

	registered chan struct{} // closed once the Node is known to exist
	look       chan struct{} // capacity 1: the watch has shown what must be looked at now
	claimed    chan struct{} // closed once the Node is this program's
	followed   atomic.Bool   // the watch has shown the Node
	rival      atomic.Bool   // another program has the name, and an event says so

	// reporting, of capacity 1, is full while the Node is read and written, so that an earlier status cannot
	// overwrite a later status. It guards what follows.
	reporting chan struct{}
	seen      bool      // whether the Node's earlier conditions were taken over
	pressures pressures // what earlier readings found
	reading   Reading   // the last good one
	reported  time.Time // when the status was last written
	closed    bool      // whether the Node was unschedulable when it was last seen
	deleted   bool      // whether the Node was deleted from the API
	sought    time.Time // when the server was last asked for it
	other     claim     // the lease of another program, until the Node is claimed

	mu  sync.Mutex // guards what follows, for the accessors
	ran bool
	uid types.UID
	err error
	// current is the Node as last read from the API.
	current *v1.Node
	// renewed is when the lease was last renewed.
	renewed time.Time
}

// New creates a Node. New starts nothing: see [Node.Run].
func New(o Options) (*Node, error) {
	o.setDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Node{
		o: o, log: o.Logger.With("node", o.Name), registered: make(chan struct{}), claimed: make(chan struct{}),
		reporting: make(chan struct{}, 1), look: make(chan struct{}, 1),
	}, nil
}

// Run registers the node and maintains it until ctx ends, then returns nil. Run leaves Node and
// lease in place, because a restart of the program does not end the node. Run may be called once.
func (n *Node) Run(ctx context.Context) error {
	n.mu.Lock()
	again := n.ran
	n.ran = true
	n.mu.Unlock()
	if again {
		return errRunTwice
	}
	var lease sync.WaitGroup
	lease.Go(func() { n.keepLease(ctx) })
	if n.follows() {
		lease.Go(func() { n.follow(ctx) })
	}
	defer lease.Wait()

	for attempt := 0; ; {
		wait := n.o.Interval
		if err := n.Report(ctx); errors.Is(err, ErrDeleted) {
			attempt = 0 // not created again, but read: an administrator may have restored it
		} else if errors.Is(err, errNameInUse) {
			attempt, wait = 0, claimRetry // an event has said so
		} else if err != nil && ctx.Err() == nil {
			attempt++
			wait = min(retrySchedule.Random(attempt), n.o.Interval)
			if !n.isClaimed() { // the pods of the Node wait for it
				wait = min(wait, claimRetry)
			}
			n.log.Warn("node not up to date, retrying", "attempt", attempt, "err", err)
		} else {
			attempt = 0
		}
		if !n.sleep(ctx, wait) {
			return nil
		}
	}
}

// sleep waits for d, or until the watch delivers an urgent change. sleep reports whether ctx is still active.
func (n *Node) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-n.look:
	}
	return ctx.Err() == nil
}

// UID returns the UID of the Node object, or empty until the node is registered.
func (n *Node) UID() types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.uid
}

// Err returns why the last update of the Node failed, or nil if the Node is up to date.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// LeaseRenewed returns when the lease was last renewed, zero if never.
func (n *Node) LeaseRenewed() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.renewed
}

// Announce retries [Node.Report] until the API server accepts the update or ctx ends. Call it when
// the result of [Options.Ready] has changed and must be delivered, as before a shutdown of the
// machine.
func (n *Node) Announce(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := n.Report(ctx)
		if err == nil || errors.Is(err, ErrDeleted) || errors.Is(err, errNameInUse) {
			return err
		}
		n.log.Warn("node not up to date, retrying", "attempt", attempt, "err", err)
		if !backoff.Sleep(ctx, retrySchedule.Random(attempt)) {
			return fmt.Errorf("node: status of %s not accepted: %w", n.o.Name, err)
		}
	}
}

// Report reads the machine and updates the Node once, now. Run does so periodically; call Report
// when the result of [Options.Ready] has changed and should be delivered soon.
func (n *Node) Report(ctx context.Context) error {
	select {
	case n.reporting <- struct{}{}:
		defer func() { <-n.reporting }()
	case <-ctx.Done():
		return fmt.Errorf("node: %w", ctx.Err())
	}
	err := n.report(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
	return err
}

func (n *Node) report(ctx context.Context) error {
	now := time.Now()
	reading, unread := n.o.Read()
	if unread == nil {
		n.reading = reading
		n.pressures = n.pressures.after(reading, n.o.Thresholds, now)
		if n.o.Pressure != nil {
			n.pressures = n.pressures.decided(n.o.Pressure(), now)
		}
	} else if n.reading.CPUs == 0 {
		return unread // never read: there is no data to report yet
	}
	if err := n.claim(ctx, now); err != nil {
		return err
	}
	f := findings{pressures: n.pressures, unread: unread, notReady: n.o.Ready()}

	node, created, err := n.findOrCreate(ctx, f, now)
	if err != nil {
		return err
	}
	n.note(node)
	n.recordSchedulable(node)
	if created {
		n.seen, n.reported = true, now
		n.recordStatus(&v1.NodeStatus{}, &node.Status)
		return nil
	}
	if !n.seen {
		n.adopt(node, now)
		if n.o.Pressure != nil {
			n.pressures = n.pressures.decided(n.o.Pressure(), now)
		}
		f.pressures = n.pressures
	}
	object := n.o.object(n.reading, conditions(f, n.o.Thresholds.Clear, node.Status.Conditions, now))
	if node, err = n.mendLabels(ctx, node, object); err != nil {
		return err
	}
	want := object.Status
	if n.o.Configure != nil {
		want.Conditions = timed(want.Conditions, node.Status.Conditions, now)
	}
	if isUpToDate(node.Status, want) && now.Sub(n.reported) < n.o.Report {
		return nil
	}
	patch, err := statusPatch(node.UID, want)
	if err != nil {
		return err
	}
	if _, err := n.patch(ctx, "patch status of the node", patch, "status"); err != nil {
		return err
	}
	n.reported = now
	n.recordStatus(&node.Status, &want)
	return nil
}

// findOrCreate reads the Node, from the server's cache first, and creates it if missing. A Node that existed
// before is not created again: it was deleted on purpose, as after kubectl drain.
func (n *Node) findOrCreate(ctx context.Context, f findings, now time.Time) (node *v1.Node, created bool, err error) {
	if n.o.Watched != nil {
		if node := n.o.Watched(); node != nil {
			n.setDeleted(false)
			return node, false, nil
		}
		if n.deleted && now.Sub(n.sought) < n.o.Report { // the watch shows it when it is there again
			return nil, false, ErrDeleted
		}
	}
	n.sought = now
	node, err = n.get(ctx, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) && n.isKnown() {
		node, err = n.get(ctx, metav1.GetOptions{}) // the cache may be behind
	}
	if !apierrors.IsNotFound(err) {
		if err == nil {
			n.setDeleted(false)
		}
		return node, false, err
	}
	if n.isKnown() {
		n.setDeleted(true)
		return nil, false, ErrDeleted
	}
	object := n.o.object(n.reading, conditions(f, n.o.Thresholds.Clear, nil, now))
	object.Status.Conditions = timed(object.Status.Conditions, nil, now)
	object.Spec.Unschedulable = n.o.Memory.wasCordoned()
	node, err = n.create(ctx, object)
	if apierrors.IsAlreadyExists(err) { // the cache was behind
		node, err = n.get(ctx, metav1.GetOptions{})
		return node, false, err
	}
	if err == nil {
		n.log.Info("node registered", "uid", node.UID)
	}
	return node, err == nil, err
}

// bounded waits for the turn of a request, if there are turns, and bounds its time.
func bounded(ctx context.Context, turn func(context.Context) (func(), error)) (context.Context, func(), error) {
	done := func() {}
	if turn != nil {
		var err error
		if done, err = turn(ctx); err != nil {
			return nil, nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	return ctx, func() { cancel(); done() }, nil
}

func (n *Node) get(ctx context.Context, options metav1.GetOptions) (*v1.Node, error) {
	ctx, done, err := bounded(ctx, n.o.Turn)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	defer done()
	node, err := n.o.Client.CoreV1().Nodes().Get(ctx, n.o.Name, options)
	if err != nil {
		return nil, fmt.Errorf("node: get node: %w", err)
	}
	return node, nil
}

func (n *Node) create(ctx context.Context, node *v1.Node) (*v1.Node, error) {
	ctx, done, err := bounded(ctx, n.o.Turn)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	defer done()
	node, err = n.o.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("node: create node: %w", err)
	}
	return node, nil
}

func (n *Node) patch(ctx context.Context, what string, patch []byte, subresources ...string) (*v1.Node, error) {
	ctx, done, err := bounded(ctx, n.o.Turn)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	defer done()
	node, err := n.o.Client.CoreV1().Nodes().Patch(ctx, n.o.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return nil, fmt.Errorf("node: %s: %w", what, err)
	}
	return node, nil
}

// adopt takes over an existing Node.
func (n *Node) adopt(node *v1.Node, now time.Time) {
	n.seen = true
	before := remembered(node.Status.Conditions, now)
	n.pressures = pressures{
		memory: instant.Later(n.pressures.memory, before.memory),
		disk:   instant.Later(n.pressures.disk, before.disk),
		pid:    instant.Later(n.pressures.pid, before.pid),
	}
	n.log.Info("node adopted", "uid", node.UID)
	if missing := missingTaints(n.o.Taints, node.Spec.Taints); len(missing) > 0 {
		n.log.Warn("configured taints are not on the node and only an administrator can add them now", "taints", fmt.Sprint(missing))
	}
}

// mendLabels restores our labels, annotations and provider ID, and nothing else. The response becomes the current Node: pods that select
// a restored label may be scheduled at once.
func (n *Node) mendLabels(ctx context.Context, node, object *v1.Node) (*v1.Node, error) {
	labels, annotations := missingLabels(object.Labels, node.Labels), missingLabels(object.Annotations, node.Annotations)
	providerID := ""
	if node.Spec.ProviderID == "" { // it can be set once
		providerID = object.Spec.ProviderID
	}
	if len(labels) == 0 && len(annotations) == 0 && providerID == "" {
		return node, nil
	}
	patch, err := labelPatch(node.UID, labels, annotations, providerID)
	if err != nil {
		return nil, err
	}
	mended, err := n.patch(ctx, "label node", patch)
	if err != nil {
		return nil, err
	}
	n.note(mended)
	return mended, nil
}

func (n *Node) note(node *v1.Node) {
	n.mu.Lock()
	before := n.uid
	n.uid, n.current = node.UID, node
	n.mu.Unlock()
	n.o.Memory.registered()
	switch {
	case before == "":
		close(n.registered)
	case before != node.UID:
		n.log.Warn("the node is another object than before", "uid", node.UID)
	}
}
