package statustest

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
)

// historyLimit is how many events a watch may go back. The real server, too, forgets.
const historyLimit = 1000

// event is a change of a stored pod.
type event struct {
	kind    watch.EventType
	pod     *v1.Pod // not modified
	version int
	at      time.Time
}

// watcher is a watch that is under way. The queue is unbounded: a slow watch delays no write.
type watcher struct {
	queue []event // guarded by Server.mu
	wake  chan struct{}
}

// SetWatchDelay sets the delay with which watches deliver changes.
func (s *Server) SetWatchDelay(d time.Duration) { s.set(func() { s.delay = d }) }

// publish records an event for watches that start later, and delivers it. The caller holds mu.
func (s *Server) publish(kind watch.EventType, pod *v1.Pod) {
	e := event{kind: kind, pod: pod, version: s.version, at: time.Now()}
	s.history = append(s.history, e)
	if surplus := len(s.history) - historyLimit; surplus > 0 {
		s.forgotten = s.history[surplus-1].version
		s.history = append([]event(nil), s.history[surplus:]...)
	}
	s.deliver(e)
}

// deliver adds an event to the queue of each watch. The caller holds mu.
func (s *Server) deliver(e event) {
	if e.at.IsZero() {
		e.at = time.Now()
	}
	for w := range s.watches {
		w.queue = append(w.queue, e)
		wake.Up(w.wake)
	}
}

// watch registers a watch. The caller holds mu.
func (s *Server) watch() *watcher {
	w := &watcher{wake: make(chan struct{}, 1)} // one signal stands for any number of events
	s.watches[w] = true
	return w
}

func (s *Server) unwatch(w *watcher) { s.set(func() { delete(s.watches, w) }) }

// next waits for an event and for the delay of the watch. next returns false if the context has ended.
func (s *Server) next(ctx context.Context, w *watcher) (event, bool) {
	for {
		s.mu.Lock()
		if len(w.queue) > 0 {
			e := w.queue[0]
			w.queue = w.queue[1:]
			wait := time.Until(e.at.Add(s.delay))
			s.mu.Unlock()
			return e, backoff.Sleep(ctx, wait)
		}
		s.mu.Unlock()
		select {
		case <-w.wake:
		case <-ctx.Done():
			return event{}, false
		}
	}
}

// Watch acts as an informer of the node's pods: it calls the handler for each stored pod, and then
// for each change in order, until the context ends.
func (s *Server) Watch(ctx context.Context, handler cache.ResourceEventHandler) {
	s.mu.Lock()
	w := s.watch()
	node, stored := s.node, maps.Clone(s.pods)
	s.mu.Unlock()
	defer s.unwatch(w)
	known := make(map[string]*v1.Pod)
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if pod := stored[name]; node == "" || pod.Spec.NodeName == node {
			known[name] = pod
			handler.OnAdd(pod.DeepCopy(), true)
		}
	}
	for {
		e, ok := s.next(ctx, w)
		if !ok {
			return
		}
		if node := s.user(); node == "" || e.pod.Spec.NodeName == node {
			handle(handler, known, e)
		}
	}
}

// handle calls the handler for an event, by what the watch has delivered before.
func handle(handler cache.ResourceEventHandler, known map[string]*v1.Pod, e event) {
	name := e.pod.Namespace + "/" + e.pod.Name
	old := known[name]
	switch {
	case e.kind == watch.Deleted:
		delete(known, name)
		if old != nil {
			handler.OnDelete(e.pod.DeepCopy())
		}
		return
	case old == nil:
		handler.OnAdd(e.pod.DeepCopy(), false)
	default:
		handler.OnUpdate(old.DeepCopy(), e.pod.DeepCopy())
	}
	known[name] = e.pod
}
