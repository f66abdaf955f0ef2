package agent

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
)

const (
	// warningsPerPod is how many different warnings are kept of a pod.
	warningsPerPod = 8
	// warningsKept is how long a warning explains something.
	warningsKept = time.Hour
)

// warnings are the last Warning events that this node has sent for each pod. Explanations need them
// even while the API server is unreachable.
type warnings struct {
	mu   sync.Mutex // guards pods
	pods map[types.UID][]explain.Warning
}

// add adds a warning. A repeated warning, with the same reason, container and beginning of the
// message, is counted: the beginning distinguishes the kinds of probes, which have the same reason.
func (w *warnings) add(uid types.UID, container, reason, message string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods == nil {
		w.pods = map[types.UID][]explain.Warning{}
	}
	known := w.pods[uid]
	next := explain.Warning{Reason: reason, Message: message, Container: container, Count: 1, Last: at}
	i := slices.IndexFunc(known, func(k explain.Warning) bool {
		return k.Reason == reason && k.Container == container && topic(k.Message) == topic(message)
	})
	if i >= 0 {
		next.Count += known[i].Count
		known = slices.Delete(known, i, i+1)
	}
	if len(known) == warningsPerPod {
		known = slices.Delete(known, 0, 1)
	}
	w.pods[uid] = append(known, next)
}

// topic is the beginning of a message.
func topic(message string) string {
	begin, _, _ := strings.Cut(message, ":")
	return begin
}

// of returns a copy of the warnings of a pod, the newest last.
func (w *warnings) of(uid types.UID) []explain.Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := time.Now().Add(-warningsKept)
	known := slices.DeleteFunc(w.pods[uid], func(k explain.Warning) bool { return k.Last.Before(old) })
	if len(known) == 0 {
		delete(w.pods, uid)
		return nil
	}
	w.pods[uid] = known
	return slices.Clone(known)
}

func (w *warnings) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, uid)
}
