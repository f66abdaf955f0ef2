package statustest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// wireEvent is one line of a watch.
type wireEvent struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// serveWatch streams the events after a resource version. With sendInitialEvents, or without a
// version, the stored pods come first.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, namespace string) {
	matches, err := selected(r, namespace)
	if err != nil {
		writeError(w, err)
		return
	}
	query := r.URL.Query()
	since, err := strconv.Atoi(query.Get("resourceVersion"))
	initial := query.Get("sendInitialEvents") == "true" || err != nil || since == 0

	s.mu.Lock()
	if !initial && since < s.forgotten {
		s.mu.Unlock()
		writeError(w, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	watcher := s.watch()
	stored, version, history := maps.Clone(s.pods), s.version, slices.Clone(s.history)
	s.mu.Unlock()
	defer s.unwatch(watcher)

	w.Header().Set("Content-Type", "application/json")
	stream := json.NewEncoder(w)
	send := func(kind watch.EventType, pod *v1.Pod) error {
		if kind != watch.Bookmark && !matches(pod) {
			return nil
		}
		pod = pod.DeepCopy()
		pod.APIVersion, pod.Kind = "v1", "Pod"
		return stream.Encode(wireEvent{kind, pod})
	}
	if initial {
		for _, name := range slices.Sorted(maps.Keys(stored)) {
			_ = send(watch.Added, stored[name])
		}
		if query.Get("sendInitialEvents") == "true" {
			_ = send(watch.Bookmark, bookmark(version))
		}
	} else {
		for _, e := range history {
			if e.version > since {
				_ = send(e.kind, e.pod)
			}
		}
	}
	flush := http.NewResponseController(w)
	for flush.Flush() == nil {
		e, ok := s.next(r.Context(), watcher)
		if !ok || send(e.kind, e.pod) != nil {
			return
		}
	}
}

// bookmark marks the end of the initial events.
func bookmark(version int) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(version),
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}
