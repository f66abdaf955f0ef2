package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/status"
)

const (
	mirrorRequestTimeout = 10 * time.Second
	mirrorFirstRetry     = 500 * time.Millisecond
	mirrorLastRetry      = time.Minute
	// mirrorWaitRetry is how soon to look again while the node is not registered, or while
	// the static pod of an unwanted mirror still ends.
	mirrorWaitRetry = time.Second
)

var errNotRegistered = errors.New("source: create mirror pod: the node is not registered yet")

// MirrorsOptions configure [Mirrors]. Client, NodeName and NodeUID are required.
type MirrorsOptions struct {
	// Client needs get, list, create and delete of pods, as the Node authorizer grants them.
	Client   kubernetes.Interface
	NodeName string
	// NodeUID is the UID of the Node object, which owns the mirrors; empty as long as the
	// node is not registered.
	NodeUID func() types.UID
	// InUse says whether a static pod that is no longer wanted still runs or ends. Its
	// mirror stays until then, so that the last statuses have a place to go. Nil means no.
	InUse func(static types.UID) bool
	// Logger is slog.Default() if nil.
	Logger *slog.Logger
}

// Mirrors keeps a mirror pod in the API for each static pod: it creates the missing,
// replaces the stale, and deletes those whose static pod is gone, also when that happened
// while statusd was not running. It is told what is through [Mirrors.Observe], and does
// nothing before both sources have spoken. Errors are retried for ever, each pod on its own.
type Mirrors struct {
	client  kubernetes.Interface
	node    string
	nodeUID func() types.UID
	inUse   func(types.UID) bool
	log     *slog.Logger
	wake    chan struct{} // one pending signal is enough

	mu     sync.Mutex // guards what follows
	spoken map[Origin]bool
	pairs  map[string]*pair // by namespace/name
}

// A pair is a static pod and its mirror, as far as each is known.
type pair struct {
	static *v1.Pod
	mirror *v1.Pod
	gone   types.UID // the mirror that ended last: late news of it is no news

	due     time.Time // of the next look; zero: nothing to do until something changes
	attempt int
	err     error
}

// NewMirrors makes a keeper of mirror pods. It starts nothing: see [Mirrors.Run].
func NewMirrors(o MirrorsOptions) (*Mirrors, error) {
	switch {
	case o.Client == nil:
		return nil, errors.New("source: mirrors: no client")
	case o.NodeName == "":
		return nil, errors.New("source: mirrors: no node name")
	case o.NodeUID == nil:
		return nil, errors.New("source: mirrors: no way to learn the node's UID")
	}
	if o.InUse == nil {
		o.InUse = func(types.UID) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Mirrors{
		client:  o.Client,
		node:    o.NodeName,
		nodeUID: o.NodeUID,
		inUse:   o.InUse,
		log:     o.Logger.With("node", o.NodeName),
		wake:    make(chan struct{}, 1),
		spoken:  map[Origin]bool{},
		pairs:   map[string]*pair{},
	}, nil
}

// Observe takes in a change of either source: static pods from files, mirror pods from
// the API; other pods are ignored. It never blocks and may be called from any goroutine.
func (m *Mirrors) Observe(c Change) {
	m.mu.Lock()
	if c.Op == Set {
		m.spoken[c.Origin] = true
	}
	for _, pod := range c.Pods {
		switch {
		case c.Origin == FromFile:
			m.observeStatic(pod, c.Op)
		case IsMirror(pod):
			m.observeMirror(pod, c.Op)
		}
	}
	m.mu.Unlock()
	m.signal()
}

func (m *Mirrors) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Mirrors) observeStatic(pod *v1.Pod, op Op) {
	p := m.pair(pod)
	switch {
	case op != Remove:
		p.static = pod
	case p.static != nil && p.static.UID == pod.UID:
		p.static = nil
	default:
		return
	}
	p.due, p.attempt = time.Now(), 0
}

func (m *Mirrors) observeMirror(pod *v1.Pod, op Op) {
	p := m.pair(pod)
	switch {
	case pod.UID == p.gone:
		return
	case op != Remove:
		p.mirror = pod
	case p.mirror != nil && p.mirror.UID == pod.UID:
		p.mirror, p.gone = nil, pod.UID
	default:
		return
	}
	// A pair that failed keeps its backoff: the event may be the echo of the failure.
	if p.attempt == 0 {
		p.due = time.Now()
	}
}

func (m *Mirrors) pair(pod *v1.Pod) *pair {
	p := m.pairs[key(pod)]
	if p == nil {
		p = &pair{}
		m.pairs[key(pod)] = p
	}
	return p
}

// Run keeps the mirrors until ctx ends, then returns nil and leaves them as they are. It
// may be called once.
func (m *Mirrors) Run(ctx context.Context) error {
	for {
		name, wait := m.next(time.Now())
		if name != "" {
			m.reconcile(ctx, name)
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		case <-time.After(wait):
		}
	}
}

// next is the pair that has been due longest, or how long to wait for one.
func (m *Mirrors) next(now time.Time) (name string, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wait = mirrorLastRetry
	if !m.spoken[FromAPI] || !m.spoken[FromFile] {
		return "", wait
	}
	var first time.Time
	for n, p := range m.pairs {
		switch {
		case p.due.IsZero():
		case p.due.After(now):
			wait = min(wait, p.due.Sub(now))
		case name == "" || p.due.Before(first) || p.due.Equal(first) && n < name:
			name, first = n, p.due
		}
	}
	return name, wait
}

// reconcile takes one step for a pair and notes when to look again.
func (m *Mirrors) reconcile(ctx context.Context, name string) {
	m.mu.Lock()
	p := m.pairs[name]
	static, mirror := p.static, p.mirror
	p.due = time.Time{} // an Observe in the meantime sets it again
	m.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, mirrorRequestTimeout)
	defer cancel()
	result, err := m.step(ctx, static, mirror)

	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		result(p)
		p.attempt, p.err = 0, nil
		if p.static == nil && p.mirror == nil && p.due.IsZero() {
			delete(m.pairs, name)
		}
		return
	}
	p.err = err
	if errors.Is(err, errNotRegistered) {
		p.due = time.Now().Add(mirrorWaitRetry) // waiting is no failure
		return
	}
	p.attempt++
	p.due = time.Now().Add(retryAfter(p.attempt))
	m.log.Warn("mirror pod not up to date, retrying", "pod", name, "attempt", p.attempt, "err", err)
}

// step does the next thing that brings a mirror in line with its static pod, and returns
// how that changes the pair.
func (m *Mirrors) step(ctx context.Context, static, mirror *v1.Pod) (func(*pair), error) {
	switch {
	case mirror != nil && !IsMirrorOf(mirror, static):
		if shadowed := types.UID(mirror.Annotations[MirrorAnnotation]); (static == nil || static.UID != shadowed) && m.inUse(shadowed) {
			return func(p *pair) { p.due = time.Now().Add(mirrorWaitRetry) }, nil
		}
		if err := m.delete(ctx, mirror); err != nil {
			return nil, err
		}
		return func(p *pair) {
			p.gone = mirror.UID
			if p.mirror != nil && p.mirror.UID == mirror.UID {
				p.mirror = nil
			}
			p.due = time.Now() // for what comes next
		}, nil
	case mirror == nil && static != nil:
		created, err := m.create(ctx, static)
		if err != nil {
			return nil, err
		}
		return func(p *pair) {
			switch {
			case p.mirror != nil: // the watch was faster
			case created.UID == p.gone: // and so was its end; with a pause, lest we go in circles
				p.due = time.Now().Add(mirrorWaitRetry)
				return
			default:
				p.mirror = created
			}
			if !IsMirrorOf(p.mirror, static) {
				p.due = time.Now() // another was in the way: replace it
			}
		}, nil
	}
	return func(*pair) {}, nil
}

// IsMirrorOf says whether a mirror shadows exactly this static pod and is there to stay.
func IsMirrorOf(mirror, static *v1.Pod) bool {
	return static != nil && mirror.DeletionTimestamp == nil &&
		mirror.Annotations[MirrorAnnotation] == static.Annotations[HashAnnotation]
}

// create makes the mirror, or finds the one that is already there.
func (m *Mirrors) create(ctx context.Context, static *v1.Pod) (*v1.Pod, error) {
	uid := m.nodeUID()
	if uid == "" {
		return nil, errNotRegistered
	}
	pods := m.client.CoreV1().Pods(static.Namespace)
	created, err := pods.Create(ctx, mirrorFor(static, m.node, uid), metav1.CreateOptions{})
	if err == nil {
		m.log.Info("mirror pod created", "pod", key(static), "uid", created.UID)
		return created, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("source: create mirror pod: %w", err)
	}
	found, err := pods.Get(ctx, static.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("source: look at the pod that has the mirror's name: %w", err)
	}
	if !IsMirror(found) || found.Spec.NodeName != m.node {
		return nil, fmt.Errorf("source: create mirror pod: a pod %s that is not a mirror of this node is in the way; delete it or rename the static pod", key(static))
	}
	return found, nil
}

// delete removes exactly this mirror, at once: nothing runs behind it.
func (m *Mirrors) delete(ctx context.Context, mirror *v1.Pod) error {
	now := int64(0)
	err := m.client.CoreV1().Pods(mirror.Namespace).Delete(ctx, mirror.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      metav1.NewUIDPreconditions(string(mirror.UID)),
	})
	switch {
	case apierrors.IsNotFound(err):
		list := m.client.CoreV1().Pods(mirror.Namespace).List
		if err := status.ConfirmGone(ctx, m.node, mirror.Name, mirror.UID, list); err != nil {
			return fmt.Errorf("source: delete mirror pod: %w", err)
		}
	case err != nil && !apierrors.IsConflict(err): // in a conflict the name is another pod's by now
		return fmt.Errorf("source: delete mirror pod: %w", err)
	}
	m.log.Info("mirror pod deleted", "pod", key(mirror), "uid", mirror.UID)
	return nil
}

// mirrorFor is the mirror pod to create for a static pod: the same pod, marked, owned by
// the node. NodeRestriction admits exactly this shape.
func mirrorFor(static *v1.Pod, node string, nodeUID types.UID) *v1.Pod {
	mirror := static.DeepCopy()
	mirror.UID = ""
	metav1.SetMetaDataAnnotation(&mirror.ObjectMeta, MirrorAnnotation, static.Annotations[HashAnnotation])
	controller := true
	mirror.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1",
		Kind:       "Node",
		Name:       node,
		UID:        nodeUID,
		Controller: &controller,
	}}
	return mirror
}

// retryAfter doubles with each failure, with a fifth of jitter.
func retryAfter(attempt int) time.Duration {
	d := mirrorLastRetry
	if attempt < 10 {
		d = min(d, mirrorFirstRetry<<(attempt-1))
	}
	return d + time.Duration(rand.Int64N(int64(d/5)))
}

// Pending is what keeps mirrors from being right, by pod (namespace/name). It is empty
// when all is well.
func (m *Mirrors) Pending() map[string]error {
	m.mu.Lock()
	defer m.mu.Unlock()
	pending := map[string]error{}
	for name, p := range m.pairs {
		if p.err != nil {
			pending[name] = p.err
		}
	}
	return pending
}
