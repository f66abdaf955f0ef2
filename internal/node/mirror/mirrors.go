package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/podstatus"
)

const (
	requestTimeout = 10 * time.Second
	// waitRetry is the pause while the node is not registered, or while the static pod of
	// an obsolete mirror still has running containers.
	waitRetry = time.Second
)

// retrySchedule spaces the tries of a pair whose request failed.
var retrySchedule = backoff.Schedule{First: 500 * time.Millisecond, Limit: time.Minute}

// fightSchedule spaces the creations and deletions of a mirror that another program deletes or creates again and again.
var fightSchedule = backoff.Schedule{First: time.Second, Limit: 5 * time.Minute}

// calm is how long a mirror must have been left alone for such a fight to be over.
const calm = 10 * time.Minute

var errNotRegistered = errors.New("mirror: create pod: the node is not registered yet")

// Options configure [Mirrors]. Client, NodeName and NodeUID are required.
type Options struct {
	// Client needs get, list, create and delete of pods, as the Node authorizer grants them.
	Client   kubernetes.Interface
	NodeName string
	// NodeUID is the UID of the Node object, which owns the mirrors; empty as long as the
	// node is not registered.
	NodeUID func() types.UID
	// InUse reports whether a static pod whose manifest is gone still has running
	// containers. Its mirror stays until then, so that the last statuses can be written.
	// Nil means that none has.
	InUse func(static types.UID) bool
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// Mirrors keeps a mirror pod in the API for each static pod: it creates missing ones,
// replaces stale ones, and deletes those whose static pod is gone, also when that happened
// while statusd was not running. [Mirrors.Observe] feeds it; it does nothing before both
// sources have synced. Failed requests are retried forever, with a backoff per pod.
type Mirrors struct {
	client  kubernetes.Interface
	node    string
	nodeUID func() types.UID
	inUse   func(types.UID) bool
	log     *slog.Logger
	wake    chan struct{} // one pending signal is enough

	mu     sync.Mutex // guards what follows
	synced map[source.Origin]bool
	pairs  map[string]*pair // by namespace/name
}

// A pair is a static pod and its mirror, as far as each is known.
type pair struct {
	static *v1.Pod
	mirror *v1.Pod
	gone   types.UID // the last deleted mirror: late events of it are ignored

	due     time.Time // when to reconcile next; zero: when something changes
	attempt int
	err     error

	acts  int       // how often a mirror was created or deleted, without a long pause
	acted time.Time // when it was last
}

// next is when the mirror may be created or deleted again. An edit takes two acts, for which nothing waits. More of them
// are a fight, as with another agent that has the name of this node, or a controller that deletes what it does not know.
func (p *pair) next() time.Time {
	if p.acts < 2 {
		return time.Time{}
	}
	return p.acted.Add(fightSchedule.Wait(p.acts-1, 0))
}

// act counts a creation or a deletion.
func (p *pair) act(now time.Time) {
	if now.Sub(p.acted) > calm {
		p.acts = 0
	}
	p.acts, p.acted = p.acts+1, now
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var problems []error
	if o.Client == nil {
		problems = append(problems, errors.New("no Client"))
	}
	if o.NodeName == "" {
		problems = append(problems, errors.New("no NodeName"))
	}
	if o.NodeUID == nil {
		problems = append(problems, errors.New("no NodeUID: the Node object owns the mirror pods"))
	}
	return errors.Join(problems...)
}

// New makes Mirrors. New starts nothing: see [Mirrors.Run].
func New(o Options) (*Mirrors, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	if o.InUse == nil {
		o.InUse = func(types.UID) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Mirrors{
		client:  o.Client,
		node:    o.NodeName,
		nodeUID: o.NodeUID,
		inUse:   o.InUse,
		log:     o.Logger.With("node", o.NodeName),
		wake:    make(chan struct{}, 1),
		synced:  map[source.Origin]bool{},
		pairs:   map[string]*pair{},
	}, nil
}

// Observe handles a change of either source: static pods from files, mirror pods from
// the API. It ignores other pods. Observe never blocks and may be called from any goroutine.
func (m *Mirrors) Observe(c source.Change) {
	m.mu.Lock()
	if c.Op == source.Set {
		m.synced[c.Origin] = true
	}
	for _, pod := range c.Pods {
		switch {
		case c.Origin == source.FromFile:
			m.observeStatic(pod, c.Op)
		case podstatus.IsMirror(pod):
			m.observeMirror(pod, c.Op)
		}
	}
	m.mu.Unlock()
	wake.Up(m.wake)
}

func (m *Mirrors) observeStatic(pod *v1.Pod, op source.Op) {
	p := m.pair(pod)
	switch {
	case op != source.Remove:
		if p.static == nil || p.static.UID != pod.UID {
			p.acts = 0
		}
		p.static = pod
	case p.static != nil && p.static.UID == pod.UID:
		p.static, p.acts = nil, 0
	default:
		return
	}
	p.due, p.attempt = time.Now(), 0
}

func (m *Mirrors) observeMirror(pod *v1.Pod, op source.Op) {
	p := m.pair(pod)
	switch {
	case pod.UID == p.gone:
		return
	case op != source.Remove:
		p.mirror = pod
	case p.mirror != nil && p.mirror.UID == pod.UID:
		p.mirror, p.gone = nil, pod.UID
	default:
		return
	}
	// A pair that failed keeps its backoff: the event may be caused by the failed request.
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

// Run keeps the mirrors up to date until ctx ends, then returns nil and leaves them in place.
// Run may be called once.
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

// next returns the pair that has been due longest, or how long to wait for one.
func (m *Mirrors) next(now time.Time) (name string, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wait = retrySchedule.Limit
	if !m.synced[source.FromAPI] || !m.synced[source.FromFile] {
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

// Pending returns the last error of each mirror pod that is not up to date, by
// namespace/name of the pod.
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

func key(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
