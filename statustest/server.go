package statustest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
)

// Request is a request that the server has received.
type Request struct {
	Verb string // LIST, GET, PATCH, DELETE, VERSION; of objects other than pods also WATCH, CREATE, UPDATE
	Name string // namespace/name of the pod; empty for LIST and VERSION
	// Resource is empty for pods, otherwise nodes, leases, events, configmaps, secrets or services.
	Resource string
	UID      types.UID
	At       time.Time
	Body     string // the patch
	Err      error  // nil if the request succeeded or is still in flight
}

// String returns "VERB namespace/name".
func (r Request) String() string { return r.Verb + " " + r.Name }

// PodName returns the name of the pod without its namespace.
func (r Request) PodName() string {
	for i := range r.Name {
		if r.Name[i] == '/' {
			return r.Name[i+1:]
		}
	}
	return r.Name
}

// Fault decides on a request before it is served. A non-nil error is the response, and the request
// changes nothing, except for [ErrAnswerLost] and [Late].
type Fault func(ctx context.Context, r Request) error

// Server is a fake API server with pods in memory. Create one with [New]. Its methods may be called
// from any goroutine.
//
// List, Get, PatchStatus and Delete are the requests of a node, and make a Server a minimal client
// of a status manager. [Server.Client] returns a client with all optional methods. The other
// methods act as other users of the API, or return what tests need; faults and latency do not apply
// to them.
type Server struct {
	// writing is held while a change is stored and delivered to the watches, so that they see
	// changes in the order in which they were stored. It is taken before mu.
	writing sync.Mutex

	mu        sync.Mutex
	pods      map[string]*v1.Pod // by namespace/name; a stored pod is never modified
	version   int
	requests  []*Request
	lists     int
	inFlight  map[string]int
	overlaps  []string
	node      string
	latency   time.Duration
	fault     Fault
	webhook   func(*v1.Pod)
	stored    func(*v1.Pod)
	removed   func(*v1.Pod)
	delay     time.Duration
	restores  int // how often a backup was restored
	watches   map[*watcher]bool
	history   []event
	forgotten int                    // the newest version that history no longer has
	objects   map[string]*collection // what is no pod, by resource
}

// New returns a server without pods.
func New() *Server {
	return &Server{pods: make(map[string]*v1.Pod), inFlight: make(map[string]int), watches: make(map[*watcher]bool), objects: make(map[string]*collection)}
}

// SetNode makes a node the user of the requests: the Node authorizer and NodeRestriction then deny
// access to pods of other nodes, and to pods that do not exist. Empty, the default, is a user with
// all rights.
func (s *Server) SetNode(name string) { s.set(func() { s.node = name }) }

// SetLatency sets how long each request takes.
func (s *Server) SetLatency(d time.Duration) { s.set(func() { s.latency = d }) }

// SetFault sets the [Fault] that decides on requests before they are served; nil removes it.
func (s *Server) SetFault(fault Fault) { s.set(func() { s.fault = fault }) }

// SetWebhook sets a function that changes each patched pod before it is stored, as a mutating
// admission webhook does, or a server that does not know a field; nil removes it.
func (s *Server) SetWebhook(webhook func(*v1.Pod)) { s.set(func() { s.webhook = webhook }) }

// OnStore sets a function that is called with each pod that is stored, in order, before the request
// is answered: a watch without any delay. The function must not write to the server. Nil removes
// it.
func (s *Server) OnStore(stored func(*v1.Pod)) { s.set(func() { s.stored = stored }) }

// OnRemove is like [Server.OnStore] for pods that are removed.
func (s *Server) OnRemove(removed func(*v1.Pod)) { s.set(func() { s.removed = removed }) }

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// begin records a request and applies latency and faults. An error is the answer. Otherwise the
// caller serves the request and passes its result to end, which returns what the client gets.
func (s *Server) begin(ctx context.Context, r Request) (end func(error) error, err error) {
	finish, fault, latency := s.record(&r)
	if !backoff.Sleep(ctx, latency) {
		return nil, finish(ctx.Err())
	}
	if fault == nil {
		return finish, nil
	}
	err = fault(ctx, r)
	late, isLate := errors.AsType[*lateError](err)
	switch {
	case err == nil:
		return finish, nil
	case isLate:
		<-ctx.Done()
		return nil, finish(&lateError{late.after, ctx.Err()})
	case errors.Is(err, ErrHang):
		<-ctx.Done()
		return nil, finish(ctx.Err())
	case errors.Is(err, ErrAnswerLost):
		return func(error) error { return finish(ErrAnswerLost) }, nil
	default:
		return nil, finish(err)
	}
}

// record adds a request to those in flight, until finish is called with its answer.
func (s *Server) record(r *Request) (finish func(error) error, fault Fault, latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.At = time.Now()
	s.requests = append(s.requests, r)
	if r.Verb == "LIST" && r.Resource == "" {
		s.lists++
	}
	pod := r.Resource + r.Name + " " + string(r.UID) // two pods that had one name in turn are two
	s.inFlight[pod]++
	if s.inFlight[pod] > 1 && r.UID != "" { // a read has no UID
		s.overlaps = append(s.overlaps, r.String())
	}
	return func(err error) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.inFlight[pod]--; s.inFlight[pod] == 0 {
			delete(s.inFlight, pod)
		}
		r.Err = err
		return err
	}, s.fault, s.latency
}

// Requests returns the requests since the last [Server.ForgetRequests], in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Log returns the requests about single pods as "VERB namespace/name".
func (s *Server) Log() []string {
	var log []string
	for _, r := range s.Requests() {
		if r.Verb != "LIST" && r.Resource == "" {
			log = append(log, r.String())
		}
	}
	return log
}

// Count returns how many of the requests about pods have the verb.
func (s *Server) Count(verb string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Verb == verb && r.Resource == "" {
			n++
		}
	}
	return n
}

// Lists returns the number of LIST requests for pods since the server was created.
func (s *Server) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// ForgetRequests clears the recorded requests.
func (s *Server) ForgetRequests() { s.set(func() { s.requests = nil }) }

// Overlaps returns the requests that arrived while another request for the same pod was in flight.
func (s *Server) Overlaps() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.overlaps)
}

// Pod returns the stored pod with this pod's namespace and name, or nil.
func (s *Server) Pod(pod *v1.Pod) *v1.Pod {
	found, err := s.find(pod.Namespace, pod.Name)
	if err != nil {
		return nil
	}
	return found
}

// Pods returns all stored pods, by namespace and name.
func (s *Server) Pods() []*v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*v1.Pod
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		all = append(all, s.pods[name].DeepCopy())
	}
	return all
}
