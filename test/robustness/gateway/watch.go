package gateway

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"
)

// Watch is what happens to watches while it is set.
type Watch string

const (
	Silent     Watch = "watch silent"     // events are withheld, and the watch ends when the fault does
	Late       Watch = "watch late"       // each event comes 2 s late
	Duplicated Watch = "watch duplicated" // each change comes twice
	Expired    Watch = "watch expired"    // each watch ends with "410 Gone" at its next event
)

const lateness = 2 * time.Second

// watchRules are the faults of watches that are set.
type watchRules struct {
	mu      sync.Mutex // guards what follows
	set     map[Watch]int
	changed chan struct{} // closed when set changes
}

func newWatchRules() *watchRules {
	return &watchRules{set: map[Watch]int{}, changed: make(chan struct{})}
}

// SetWatch has a fault in effect until the returned function is called.
func (g *Gateway) SetWatch(fault Watch) (unset func()) {
	add := func(n int) {
		r := g.rules.watch
		r.mu.Lock()
		defer r.mu.Unlock()
		r.set[fault] += n
		close(r.changed)
		r.changed = make(chan struct{})
	}
	add(1)
	return func() { add(-1) }
}

// is reports whether a fault is set, and returns a channel that is closed when that may have changed.
func (r *watchRules) is(fault Watch) (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set[fault] > 0, r.changed
}

// gone is the event by which a server ends a watch whose version it has no more.
const gone = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"injected: too old resource version","reason":"Expired","code":410}}` + "\n"

// event is a line of a watch.
type event struct {
	line []byte
	at   time.Time // when it came
}

// buffered is how many events may be late at a time.
const buffered = 10_000

// relay passes the events of a watch on.
func (g *Gateway) relay(w http.ResponseWriter, r *http.Request, response *http.Response) {
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	events := make(chan event, buffered)
	go func() {
		defer close(events)
		for lines := bufio.NewReader(response.Body); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			select {
			case events <- event{line, time.Now()}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for e := range events {
		if !g.rules.watch.pass(ctx, w, e) {
			return
		}
		_ = flush.Flush()
	}
}

// pass passes an event on; false: the watch ends.
func (r *watchRules) pass(ctx context.Context, w http.ResponseWriter, e event) bool {
	if silent, changed := r.is(Silent); silent {
		for silent {
			select {
			case <-changed:
				silent, changed = r.is(Silent)
			case <-ctx.Done():
				return false
			}
		}
		return false
	}
	if expired, _ := r.is(Expired); expired {
		_, _ = w.Write([]byte(gone))
		return false
	}
	if late, _ := r.is(Late); late {
		select {
		case <-time.After(time.Until(e.at.Add(lateness))):
		case <-ctx.Done():
			return false
		}
	}
	_, err := w.Write(e.line)
	if twice, _ := r.is(Duplicated); twice && err == nil && !bytes.HasPrefix(e.line, []byte(`{"type":"BOOKMARK"`)) {
		_, err = w.Write(e.line)
	}
	return err == nil
}
