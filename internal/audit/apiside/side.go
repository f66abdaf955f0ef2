package apiside

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/internal/answer"
	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/internal/podapi"
	"github.com/statusd/statusd/internal/wake"
)

// Side collects the API server's facts. Make it with [New].
type Side struct {
	options  Options
	log      *slog.Logger
	http     *http.Client
	client   kubernetes.Interface
	metadata metadata.Interface
	clock    *clock
	confirm  chan struct{} // of capacity 1: one signal is enough

	mu                 sync.Mutex // guards what follows, and the streams
	pods, nodes, lease *stream
	facts              audit.API // the Node and the lease
	podsByUID          map[types.UID]audit.Sighting
	shared             bool      // podsByUID was handed out, and must be copied before a change
	reached            uint64    // the highest resource version of pods that was seen since the last list
	highest            uint64    // the highest one of all
	restored           time.Time // when the server's versions had gone back; zero: they have not
	confirmed          time.Time // until when the watch of pods is known to have missed nothing
}

// New makes a side. New starts nothing and sends no request: see [Side.Run].
func New(o Options) (*Side, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("apiside: %w", err)
	}
	o.setDefaults()
	s := &Side{options: o, log: o.Logger.With("node", o.Node), confirm: make(chan struct{}, 1), clock: &clock{requests: map[string]uint64{}}}
	if err := s.connect(); err != nil {
		return nil, fmt.Errorf("apiside: %w", err)
	}
	s.streams()
	return s, nil
}

// connect makes the clients, which send nothing yet.
func (s *Side) connect() error {
	config := rest.CopyConfig(s.options.Config)
	config.Timeout = 0 // a watch has no end; other requests have a bound of their own
	config.QPS = -1    // three watches need no limit
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		s.clock.next = next
		return s.clock
	})
	var err error
	if s.http, err = rest.HTTPClientFor(config); err != nil {
		return err
	}
	if s.client, err = kubernetes.NewForConfigAndClient(config, s.http); err != nil {
		return err
	}
	s.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), s.http)
	return err
}

// streams makes the three watches.
func (s *Side) streams() {
	node := s.options.Node
	pods := s.client.CoreV1().Pods(metav1.NamespaceAll)
	nodes := s.client.CoreV1().Nodes()
	leases := s.client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	named := fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()
	from := answer.New(s.options.Config.Host)
	s.pods = &stream{
		side: s, what: "pods of node " + node, right: "list and watch on pods", example: &v1.Pod{}, selector: podapi.OnNode(node),
		lists: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return listed(pods.List(ctx, o))
		},
		watches: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(ctx, o) },
		store:   podStore{s}, record: from,
	}
	s.nodes = &stream{
		side: s, what: "node " + node, right: "list and watch on nodes", example: &v1.Node{}, selector: named,
		lists: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return listed(nodes.List(ctx, o))
		},
		watches: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return nodes.Watch(ctx, o) },
		store:   objectStore{s, func() *stream { return s.nodes }, s.setNode}, record: from,
	}
	s.lease = &stream{
		side: s, what: "lease of node " + node, right: "get on leases in " + v1.NamespaceNodeLease, example: &coordinationv1.Lease{}, selector: named,
		lists: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return listed(leases.List(ctx, o))
		},
		watches: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return leases.Watch(ctx, o) },
		store:   objectStore{s, func() *stream { return s.lease }, s.setLease}, record: from,
		// Polled: an answer shows that the server answers, which a watch without events does not. The Node authorizer lets a node
		// read its lease, and neither list nor watch it.
		polls: true,
		get:   func(ctx context.Context) (runtime.Object, error) { return leases.Get(ctx, node, metav1.GetOptions{}) },
	}
}

// listed is the answer to a LIST, or the error of an answer that is no list.
func listed[L interface {
	runtime.Object
	metav1.ListInterface
}](list L, err error) (runtime.Object, error) {
	return list, podapi.Listed(list, err)
}

// Facts returns the latest facts from the API server. Facts does not wait.
func (s *Side) Facts() audit.API {
	m := s.clock.measurement()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = true
	facts := s.facts
	facts.APIPods = s.podsByUID
	facts.APIAnswer = s.answer(time.Now())
	facts.APIConfirmed = s.confirmed
	facts.APIRestored = s.restored
	facts.Clock, facts.ClockError, facts.ClockAt = m.ahead, m.err, m.at
	return facts
}

// answer is the combined answer of the three watches. The caller holds the lock.
func (s *Side) answer(now time.Time) audit.Answer {
	all := audit.Answer{From: s.options.Config.Host}
	for i, st := range []*stream{s.pods, s.nodes, s.lease} {
		one := st.record.Answer()
		// An open watch on which the server was heard lately is current though nothing comes.
		if one.Known() && st.open && now.Sub(st.heard) < s.options.Quiet {
			one.At = now
		}
		if i == 0 || one.At.Before(all.At) && !(one.Known() && st.polls) {
			all.At = one.At
		}
		all.Since = instant.Later(all.Since, one.Since)
		all.Silent = instant.Earlier(all.Silent, one.Silent)
		if all.Err == "" {
			all.Err = one.Err
		}
	}
	if all.Err != "" {
		all.Since = time.Time{}
	}
	return all
}

// Confirm triggers a check whether the watch of pods has missed a change. Confirm never blocks; requests
// before the next check are merged.
func (s *Side) Confirm() { wake.Up(s.confirm) }

// Requests returns how many requests were sent to the server, by verb.
func (s *Side) Requests() map[string]uint64 { return s.clock.count() }

// Run follows the API until ctx ends, then returns nil. Run may be called once.
func (s *Side) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, st := range []*stream{s.pods, s.nodes, s.lease} {
		running.Go(func() { st.run(ctx) })
	}
	running.Go(func() { s.watchdog(ctx) })
	running.Wait()
	utilnet.CloseIdleConnectionsFor(s.http.Transport)
	return nil
}
