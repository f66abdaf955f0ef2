package apiside

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/internal/audit/internal/answer"
	"github.com/statusd/statusd/internal/backoff"
)

// stream is one kind of object that is watched.
type stream struct {
	side     *Side
	what     string // for messages: "pods of node n1"
	right    string // for messages: "list and watch on pods"
	example  runtime.Object
	selector string
	lists    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watches  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	store    cache.ReflectorStore
	// get reads the one object, for a user that may neither list nor watch; nil: there is no such user.
	get func(context.Context) (runtime.Object, error)

	// Guarded by the side's lock:
	record answer.Record
	polls  bool      // the object is read at a pace, since it may not be watched
	open   bool      // a watch is open
	synced bool      // the objects were listed
	heard  time.Time // when the server was last heard: a list, an event, a bookmark, the beginning of a watch
	// unreadable: something came that cannot be read, so that the objects are not complete before the next list.
	unreadable bool
	relist     context.CancelFunc
	said       string // the kind of error that was logged last
}

// run follows the objects until ctx ends. A watch that was given up begins again.
func (st *stream) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		switch {
		case !st.polled():
			st.follow(ctx)
		case st.poll(ctx, failures > 0):
			failures = 0
			backoff.Sleep(ctx, st.side.options.LeasePace)
		default:
			failures++
			backoff.Sleep(ctx, retries.Random(failures))
		}
	}
}

// pollTimeout is how long a read of an object that is not watched may take.
const pollTimeout = 3 * time.Second

func (st *stream) polled() bool {
	st.side.mu.Lock()
	defer st.side.mu.Unlock()
	return st.polls
}

// poll reads the object once and reports whether it could. A second failure in a row shows that the server does not answer, also while
// watches are open and silent. After a refusal the object is watched.
func (st *stream) poll(ctx context.Context, again bool) bool {
	bounded, cancel := context.WithTimeout(ctx, min(st.side.options.Timeout, pollTimeout))
	defer cancel()
	obj, err := st.get(bounded)
	switch {
	case err == nil:
		err = st.store.Replace([]any{obj}, "")
	case apierrors.IsNotFound(err):
		err = st.store.Replace(nil, "")
	}
	if err == nil || ctx.Err() != nil {
		return true
	}
	if again || !errors.Is(err, context.DeadlineExceeded) {
		st.failed("get", err)
	}
	if apierrors.IsForbidden(err) {
		// Not a user that may read this object alone: a server that has just started refuses everything.
		st.side.mu.Lock()
		defer st.side.mu.Unlock()
		st.polls = false
	}
	return false
}

// follow lists and watches until ctx ends or the watch is given up.
func (st *stream) follow(ctx context.Context) {
	log := logr.Discard() // the errors are in the Answer, and logged once
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, log))
	defer cancel()
	st.side.mu.Lock()
	st.relist = cancel
	st.side.mu.Unlock()
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: st.list, WatchFuncWithContext: st.watch}, st.side.client)
	cache.NewReflectorWithOptions(source, st.example, st.store, cache.ReflectorOptions{Name: st.what, Logger: &log}).RunWithContext(ctx)
}

// list is a list of the reflector.
func (st *stream) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	bounded, cancel := context.WithTimeout(ctx, st.side.options.Timeout)
	defer cancel()
	options.FieldSelector = st.selector
	list, err := st.lists(bounded, options)
	if err != nil && ctx.Err() == nil {
		st.failed("list", err)
	}
	return list, err
}

// watch begins a watch of the reflector. The request has no end, but its beginning has.
func (st *stream) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = st.selector
	bounded, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(st.side.options.Timeout, func() { cancel(context.DeadlineExceeded) })
	w, err := st.watches(bounded, options)
	timer.Stop()
	if err != nil {
		if ctx.Err() == nil {
			if cause := context.Cause(bounded); cause != nil {
				err = fmt.Errorf("%w: %w", cause, err)
			}
			st.failed("watch", err)
		}
		cancel(nil)
		return nil, err
	}
	// A watch that sends the initial objects is current once it has sent them.
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents
	st.opened(!initial)
	return &ending{w, func() {
		cancel(nil)
		st.closed()
	}}, nil
}

// failed notes that a request of the reflector failed.
func (st *stream) failed(verb string, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // an answer: the reflector lists again
	}
	if apierrors.IsForbidden(err) && st.get != nil && verb != "get" {
		st.side.mu.Lock()
		st.polls = true
		st.relist()
		st.side.mu.Unlock()
		return
	}
	st.doubt(verb, err, true)
}

// doubt notes that the server does not answer, and whether that ends the watch.
func (st *stream) doubt(verb string, err error, ends bool) {
	reason := err
	// The URL of a watch has a timeout at random: with it, each try would be news.
	if request := (*url.Error)(nil); errors.As(err, &request) {
		reason = request.Err
	}
	switch {
	case apierrors.IsUnauthorized(err):
		reason = fmt.Errorf("the server does not accept the credentials: check that the client certificate or the token is valid: %w", err)
	case apierrors.IsForbidden(err):
		reason = fmt.Errorf("the user needs the right %s: %w", st.right, err)
	case errors.Is(err, context.DeadlineExceeded):
		timeout := st.side.options.Timeout
		if verb == "get" {
			timeout = min(timeout, pollTimeout)
		}
		reason = fmt.Errorf("no answer within %v: %w", timeout, err)
	}
	s := st.side
	s.mu.Lock()
	if ends {
		st.open = false
	}
	level := st.levelOf(err, reason)
	news := st.record.Bad(time.Now(), fmt.Errorf("%s %s: %w", verb, st.what, reason))
	s.mu.Unlock()
	if news {
		s.log.Log(context.Background(), level, "the API server does not answer, retrying", "err", reason, "what", st.what)
		s.options.Changed("")
	}
}

// levelOf returns the level for an error: the first one of an outage is logged as a warning. A reflector that is
// refused tries a watch and a list in turn, and the two requests fail with different texts.
func (st *stream) levelOf(err, reason error) slog.Level {
	why := cmp.Or(string(apierrors.ReasonForError(err)), reason.Error())
	if before := st.said; before == why && !st.record.Answer().Silent.IsZero() {
		return slog.LevelDebug
	}
	st.said = why
	return slog.LevelWarn
}

// opened notes that a watch has begun.
func (st *stream) opened(current bool) {
	s := st.side
	s.mu.Lock()
	now := time.Now()
	st.open, st.heard = true, now
	recovered := current && st.synced && !st.unreadable && st.record.Good(now)
	s.mu.Unlock()
	if recovered {
		s.log.Info("the API server answers", "what", st.what)
		s.options.Changed("")
	}
}

// closed notes that a watch has ended. The reflector begins the next one at once.
func (st *stream) closed() {
	s := st.side
	s.mu.Lock()
	defer s.mu.Unlock()
	st.open = false
}

// hear notes that the server was heard on the watch. The caller holds the lock. hear reports whether the side did not
// answer before.
func (st *stream) hear(now time.Time) bool {
	st.heard = now
	return st.open && st.synced && !st.unreadable && st.record.Good(now)
}

// listed notes that the objects come from a list. The caller holds the lock. listed reports whether the side did not
// answer before.
func (st *stream) listed(now time.Time) bool {
	st.synced, st.unreadable, st.heard = true, false, now
	return st.record.Good(now)
}

// ending is a watch whose end is noted.
type ending struct {
	watch.Interface
	end func()
}

// Stop ends the watch. The reflector also calls it when the server has ended it.
func (e *ending) Stop() {
	e.Interface.Stop()
	e.end()
}
