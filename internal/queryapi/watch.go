package queryapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/localhost"
	"github.com/statusd/statusd/internal/view"
)

const (
	// batch is how many events are taken from the hub at once. Pods that change while the batch is
	// written are sent in their newest state.
	batch = 64
	// writePatience is how long a watcher that does not read is waited for. It can resume later.
	writePatience = 30 * time.Second
)

// serveWatch sends changes until the client leaves or the server ends.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	start, ok := s.start(w, r)
	if !ok {
		return
	}
	namespace, name, one := strings.Cut(r.URL.Query().Get("pod"), "/")
	switch pod := r.URL.Query().Get("pod"); {
	case pod != "" && !one:
		badRequest(w, "pod is %s, want NAMESPACE/NAME", localhost.Short(pod))
		return
	case pod != "" && !checkNames(w, namespace, name):
		return
	}
	if !s.hub.join(s.options.MaxWatchers) {
		fail(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "there are %d watches already, which is the limit", s.options.MaxWatchers)
		return
	}
	defer s.hub.leave()
	if one {
		if _, ok := s.detail(namespace, name); !ok {
			notFound(w, namespace, name)
			return
		}
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	out := &stream{server: s, w: w, control: http.NewResponseController(w)}
	// The limits of the server are meant for short requests.
	_ = out.control.SetReadDeadline(time.Time{})
	if one {
		out.follow(r.Context(), namespace, name)
	} else {
		out.send(r.Context(), start)
	}
}

// position is where a watch begins. Without a revision it begins with a list.
type position struct {
	revision uint64
	resumed  bool
}

// start reads where a watch begins. A revision of an earlier server begins with a list.
func (s *Server) start(w http.ResponseWriter, r *http.Request) (position, bool) {
	text := r.URL.Query().Get("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		text = last // newer than the address that a browser reconnects to
	}
	if text == "" {
		return position{}, true
	}
	epoch, number, ok := strings.Cut(text, "-")
	revision, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || epoch == "" {
		badRequest(w, "revision %s: want the revision of a list or of an event", localhost.Short(text))
		return position{}, false
	}
	if epoch != s.options.Epoch || !s.hub.resumable(revision) {
		return position{}, true
	}
	return position{revision: revision, resumed: true}, true
}

// stream is one watch.
type stream struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController
}

// send sends the changes of all pods and of the node. A watcher that has missed changes which are
// no longer kept gets a new list.
func (out *stream) send(ctx context.Context, from position) {
	for out.sendFrom(ctx, from) == nil {
		from = position{}
	}
}

// sendFrom returns nil if the watch cannot go on where it is.
func (out *stream) sendFrom(ctx context.Context, from position) error {
	hub := out.server.hub
	hub.refresh()
	hub.lookAtNode()
	at, began, synced := from.revision, from.revision, false
	if !from.resumed {
		began = hub.current() // pods that went before are not in the list
		if err := out.write(event{kind: eventReset, data: "{}"}); err != nil {
			return err
		}
	}
	for {
		if !hub.resumable(max(at, began)) {
			return nil
		}
		events, reached, changed := hub.after(at, began, batch)
		for _, e := range events {
			if err := out.write(e); err != nil {
				return err
			}
		}
		at = reached
		if len(events) == batch {
			continue
		}
		if !synced {
			synced = true
			if err := out.write(event{kind: eventSynced, revision: at, data: "{}"}); err != nil {
				return err
			}
		}
		if err := out.wait(ctx, changed); err != nil {
			return err
		}
	}
}

// follow sends the changes of one pod, and of later ones of its name.
func (out *stream) follow(ctx context.Context, namespace, name string) {
	f := follower{stream: out, namespace: namespace, name: name}
	for {
		row, touched, changed := out.server.hub.newest(namespace, name)
		if f.look(row, touched) != nil || out.wait(ctx, changed) != nil {
			return
		}
		f.began = true
	}
}

// follower is what a watch of one pod has sent.
type follower struct {
	*stream
	namespace, name string
	began           bool
	// seen is the last announcement that was looked at.
	seen uint64
	// sent is the fingerprint of the data sent last, with facts of at.
	sent string
	at   time.Time
}

// look sends the pod if it is not as it was sent last.
func (f *follower) look(r *row, touched uint64) error {
	if f.began && (r == nil || touched == f.seen) {
		return nil
	}
	f.seen = touched
	if r != nil && r.kind == eventPod {
		if p, ok := f.server.options.Source.Pod(r.uid); ok {
			return f.sendDetail(p, touched)
		}
		return nil // its end is announced next
	}
	f.sent = ""
	if f.began {
		return f.write(event{eventGone, r.revision, r.data})
	}
	detail, _ := f.server.detail(f.namespace, f.name)
	return f.write(event{eventDetail, touched, encode(detail)})
}

func (f *follower) sendDetail(p view.Pod, revision uint64) error {
	loc := f.server.options.Location
	records, found := view.RecordsOf(f.server.options.Source, p), view.FindingsOf(f.server.options.Sources)
	if f.sent != "" && f.sent == detailFingerprint(p, records, found, f.at, loc) {
		return nil
	}
	f.at = p.Facts.Now
	f.sent = detailFingerprint(p, records, found, f.at, loc)
	detail := view.Detail(p, records, loc)
	found.Add(&detail)
	return f.write(event{eventDetail, revision, encode(detail)})
}

// wait flushes written events, waits for a change, and keeps the connection alive meanwhile.
func (out *stream) wait(ctx context.Context, changed <-chan struct{}) error {
	if err := out.control.Flush(); err != nil {
		return err
	}
	heartbeat := time.NewTimer(out.server.options.Heartbeat)
	defer heartbeat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-out.server.ending:
			return context.Canceled
		case <-changed:
			return nil
		case <-heartbeat.C:
			heartbeat.Reset(out.server.options.Heartbeat)
			out.patience()
			if _, err := fmt.Fprint(out.w, ":\n\n"); err != nil {
				return err
			}
			if err := out.control.Flush(); err != nil {
				return err
			}
		}
	}
}

func (out *stream) write(e event) error {
	out.patience()
	if e.revision > 0 {
		if _, err := fmt.Fprintf(out.w, "id: %s\n", out.server.revision(e.revision)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out.w, "event: %s\ndata: %s\n\n", e.kind, e.data)
	return err
}

// patience gives the client time for the next write.
func (out *stream) patience() { _ = out.control.SetWriteDeadline(time.Now().Add(writePatience)) }
