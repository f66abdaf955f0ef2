package podsapi

import (
	"hash/maphash"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusd/statusd/internal/wake"
)

// seed seeds the digests of sent pods.
var seed = maphash.MakeSeed()

// sent is what a watcher has sent of a pod.
type sent struct {
	namespace, name string
	digest          uint64
}

// watcher is one stream of WatchPods.
type watcher struct {
	source Source
	stream grpc.ServerStreamingServer[podsv1alpha1.WatchPodsEvent]
	known  map[types.UID]sent
	// changed has the pods that have changed.
	changed *wake.Queue[types.UID]
}

// WatchPods sends all pods and then their changes until the client leaves.
func (s *Server) WatchPods(_ *podsv1alpha1.WatchPodsRequest, stream grpc.ServerStreamingServer[podsv1alpha1.WatchPodsEvent]) error {
	if err := s.synced(); err != nil {
		return err
	}
	w := &watcher{source: s.options.Source, stream: stream, known: map[types.UID]sent{}, changed: wake.NewQueue[types.UID]()}
	// What changes while the pods are listed is looked at after them.
	if !s.join(w) {
		return status.Errorf(codes.ResourceExhausted, "there are %d watches already, which is the limit", s.options.MaxWatchers)
	}
	defer s.leave(w)
	for _, pod := range s.options.Source.Pods() {
		if err := w.send(pod); err != nil {
			return err
		}
	}
	if err := stream.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return err
	}
	return w.follow()
}

func (s *Server) join(w *watcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) >= s.options.MaxWatchers {
		return false
	}
	s.watchers[w] = true
	return true
}

func (s *Server) leave(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
}

// follow sends changes until the client leaves.
func (w *watcher) follow() error {
	for {
		uid, ok := w.changed.Take()
		if !ok {
			select {
			case <-w.stream.Context().Done():
				return status.FromContextError(w.stream.Context().Err()).Err()
			case <-w.changed.Added():
			}
			continue
		}
		var err error
		if pod, ok := w.source.Pod(uid); ok {
			err = w.send(pod)
		} else {
			err = w.sendEnd(uid)
		}
		if err != nil {
			return err
		}
	}
}

// send sends a pod if it is not as it was sent last.
func (w *watcher) send(pod *v1.Pod) error {
	data, err := marshal(pod)
	if err != nil {
		return err
	}
	now := sent{pod.Namespace, pod.Name, maphash.Bytes(seed, data)}
	before, known := w.known[pod.UID]
	if known && before == now {
		return nil
	}
	w.known[pod.UID] = now
	kind := podsv1alpha1.EventType_ADDED
	if known {
		kind = podsv1alpha1.EventType_MODIFIED
	}
	return w.stream.Send(&podsv1alpha1.WatchPodsEvent{Type: kind, Pod: data})
}

// sendEnd sends that a pod is gone: its names and its UID.
func (w *watcher) sendEnd(uid types.UID) error {
	before, known := w.known[uid]
	if !known {
		return nil
	}
	delete(w.known, uid)
	data, err := marshal(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: before.namespace, Name: before.name, UID: uid}})
	if err != nil {
		return err
	}
	return w.stream.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_DELETED, Pod: data})
}
