package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/internal/wake"
)

// RefusedError is the error of a receiver that will never accept the request.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return "refused: " + e.Err.Error() }

func (e *RefusedError) Unwrap() error { return e.Err }

// WaitError is the error of a receiver that accepts no request for some time.
type WaitError struct {
	Err error
	For time.Duration
}

func (e *WaitError) Error() string { return e.Err.Error() }

func (e *WaitError) Unwrap() error { return e.Err }

// Options configure a queue. Output and Send are required.
type Options struct {
	// Output is the name of the receiver in metrics and logs.
	Output string
	// Send brings a batch to the receiver. It is never called twice at a time. A [RefusedError] means that
	// the receiver does not take the batch: its alerts are then sent one by one.
	Send func(ctx context.Context, batch []alert.Alert) error
	// Batch is how many alerts are sent at once; 64 if 0.
	Batch int
	// Alerts is how many alerts are kept; 10,000 if 0.
	Alerts int
	// Repeat is when a firing alert is sent again; 0: never.
	Repeat time.Duration
	// Timeout bounds one call of Send; 10 s if 0.
	Timeout time.Duration
	// Retry spaces the tries while the receiver does not answer; from 250 ms to 30 s if zero.
	Retry backoff.Schedule
	// Metrics count; nil: not.
	Metrics *Metrics
	Logger  *slog.Logger // nil: discards
}

// lastAnswer is how long a request that is under way at a stop may take. A request that is canceled may have arrived, and its
// alerts are sent again after the next start.
const lastAnswer = 2 * time.Second

// maxPause bounds how long a receiver may keep a queue waiting.
const maxPause = time.Minute

// Queue brings alerts to one receiver. Put may be called from any goroutine.
type Queue struct {
	options Options
	log     *slog.Logger
	woken   chan struct{}

	mu   sync.Mutex // guards what follows
	book *book
	// trouble is the last error of the receiver, nil once it takes alerts.
	trouble error
}

// Trouble returns why alerts do not reach the receiver, and how many wait, or "".
func (q *Queue) Trouble() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.trouble == nil {
		return ""
	}
	return fmt.Sprintf("%d wait: %s", q.book.waiting.Len(), text.Cut(text.Line(q.trouble.Error()), 300))
}

func (q *Queue) note(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trouble = err
}

// New makes a queue. New starts nothing: see [Queue.Run].
func New(options Options) *Queue {
	if options.Batch == 0 {
		options.Batch = 64
	}
	if options.Alerts == 0 {
		options.Alerts = 10000
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	if options.Retry == (backoff.Schedule{}) {
		options.Retry = backoff.Schedule{First: 250 * time.Millisecond, Limit: 30 * time.Second}
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	q := &Queue{options: options, log: options.Logger.With("output", options.Output), woken: make(chan struct{}, 1)}
	q.book = newBook(time.Now(), options.Alerts, options.Repeat, func(reason string) { options.Metrics.drop(options.Output, reason) })
	options.Metrics.follow(options.Output, q.Waiting)
	return q
}

// Put takes the newest state of an alert. Put never blocks, and calls no Done itself: [Queue.Run] does, for
// the caller may hold a lock that Done needs.
func (q *Queue) Put(n engine.Notification) {
	q.mu.Lock()
	news := q.book.put(n, time.Now())
	q.mu.Unlock()
	if news {
		wake.Up(q.woken)
	}
}

// Had takes a firing alert that the receiver has from before a restart, and that need not be sent again. It
// never blocks.
func (q *Queue) Had(n engine.Notification) {
	q.mu.Lock()
	q.book.had(n)
	q.mu.Unlock()
	wake.Up(q.woken)
}

// Waiting returns how many alerts wait to be sent.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.book.waiting.Len()
}

// Run sends until ctx ends, and waits for the answer to a request that is under way. Run may be called once.
func (q *Queue) Run(ctx context.Context) error {
	attempt := 0       // failures of the receiver in a row
	var away time.Time // since when
	for {
		batch, due := q.take()
		q.finish()
		if len(batch) == 0 {
			if !q.await(ctx, due) {
				return nil
			}
			continue
		}
		err := q.send(ctx, batch)
		if ctx.Err() != nil {
			q.finish()
			return nil
		}
		q.note(err)
		if err == nil {
			if attempt > 0 {
				q.log.Info("receiver takes alerts again", "attempt", attempt)
				q.resend(away)
			}
			attempt = 0
			continue
		}
		attempt++
		if attempt == 1 {
			away = time.Now()
			q.log.Warn("alerts not delivered, will retry", "alerts", len(batch), "err", err)
		} else {
			q.log.Debug("alerts not delivered, will retry", "alerts", len(batch), "attempt", attempt, "err", err)
		}
		if !backoff.Sleep(ctx, q.pause(attempt, err)) {
			return nil
		}
	}
}

// pause is the time without requests after a failure of the receiver.
func (q *Queue) pause(attempt int, err error) time.Duration {
	pause := q.options.Retry.Random(attempt)
	if asked := (*WaitError)(nil); errors.As(err, &asked) {
		pause = max(pause, min(asked.For, maxPause))
	}
	return pause
}

// send sends a batch to the receiver. If the receiver refuses the batch, the alerts are sent one by one,
// so that one bad alert does not block the rest. An error means that the receiver failed and the batch
// must be tried again.
func (q *Queue) send(ctx context.Context, batch []alert.Alert) error {
	err := q.try(ctx, batch)
	if refused := (*RefusedError)(nil); !errors.As(err, &refused) {
		q.settle(batch, err)
		q.finish()
		return err
	}
	if len(batch) == 1 {
		q.log.Warn("alert refused", "rule", batch[0].Rule, "fingerprint", batch[0].Fingerprint, "err", err)
		q.settle(batch, err)
		return nil
	}
	for i := range batch {
		if ctx.Err() != nil {
			q.settle(batch[i:], errNotTried)
			return ctx.Err()
		}
		if err := q.send(ctx, batch[i:i+1]); err != nil {
			q.settle(batch[i+1:], errNotTried)
			return err
		}
	}
	return nil
}

// errNotTried is the outcome of the rest of a batch.
var errNotTried = errors.New("not tried")

func (q *Queue) try(ctx context.Context, batch []alert.Alert) error {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.options.Timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastAnswer, cancel) })
	defer stop()
	return q.options.Send(sending, batch)
}

// settle records what became of alerts.
func (q *Queue) settle(batch []alert.Alert, err error) {
	o := outcomeOf(err)
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, alert := range batch {
		q.book.settle(alert, o, now)
	}
	switch {
	case o == delivered:
		q.options.Metrics.send(q.options.Output, len(batch))
	case err != errNotTried:
		q.options.Metrics.fail(q.options.Output, reasonOf(err), len(batch))
	}
}

func outcomeOf(err error) outcome {
	if err == nil {
		return delivered
	}
	if refusal := (*RefusedError)(nil); errors.As(err, &refusal) {
		return refused
	}
	if isUnsent(err) {
		return unsent
	}
	return failed
}

// isUnsent reports whether an error proves that nothing has arrived.
func isUnsent(err error) bool {
	if errors.Is(err, errNotTried) {
		return true
	}
	if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) { // the handshake comes before the request
		return true
	}
	dialing := (*net.OpError)(nil)
	return errors.As(err, &dialing) && dialing.Op == "dial"
}

func (q *Queue) take() (batch []alert.Alert, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	return q.book.take(q.options.Batch, now), q.book.due(now)
}

// finish calls the pending Done functions of delivered or dropped notifications.
func (q *Queue) finish() {
	q.mu.Lock()
	finished := q.book.finished
	q.book.finished = nil
	q.mu.Unlock()
	for _, done := range finished {
		done()
	}
}

func (q *Queue) resend(away time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.book.resend(away, time.Now())
}

// await waits for news, until due if that is not zero. await reports whether ctx still lasts.
func (q *Queue) await(ctx context.Context, due time.Time) bool {
	var timer <-chan time.Time
	if !due.IsZero() {
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-q.woken:
	case <-timer:
	}
	return ctx.Err() == nil
}
