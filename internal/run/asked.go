package run

import (
	"context"
	"sync"
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/text"
)

// question is a call into this process that may hang. It runs in a goroutine of its own, one at a time, so that the
// caller does not hang with it.
type question struct {
	ask func(context.Context) error
	// every is the time between two, patience how long one is waited for.
	every, patience time.Duration

	asking sync.WaitGroup
	mu     sync.Mutex // guards what follows
	last   asked
	begun  time.Time     // of the running call; zero: no call runs
	done   chan struct{} // closed when it is over
}

// asked is what became of a question.
type asked struct {
	at   time.Time // zero: not known yet
	took time.Duration
	err  error // why it failed
	// hangs: there is no answer yet, and took counts on.
	hangs bool
	// since is when the last one began that was answered well.
	since time.Time
}

func (a asked) fact() guard.Fact[guard.Answer] {
	answer := guard.Answer{Answered: true, Took: a.took}
	switch {
	case a.at.IsZero():
		return guard.NotKnown[guard.Answer](a.at, "not asked yet")
	case a.hangs:
		answer.Text = "no answer for " + text.Span(a.took)
	case a.err != nil:
		answer.Text = a.err.Error()
	default:
		answer.OK, answer.Text = true, "ok"
	}
	return guard.Read(a.at, answer)
}

// look starts the call if it is due, waits briefly for its end, and returns the last result.
func (q *question) look(ctx context.Context) asked {
	q.begin(ctx)
	q.mu.Lock()
	done := q.done
	q.mu.Unlock()
	if done != nil {
		timer := time.NewTimer(q.patience)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.begun.IsZero() {
		return q.last
	}
	now := time.Now()
	return asked{at: now, took: now.Sub(q.begun), hangs: true, since: q.last.since}
}

// begin asks, if it is time to and the one before is over.
func (q *question) begin(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	isDue := q.last.at.IsZero() || q.last.err != nil || now.Sub(q.last.since) >= q.every
	if !q.begun.IsZero() || !isDue {
		return
	}
	q.begun, q.done = now, make(chan struct{})
	q.asking.Go(func() { q.answer(ctx, now) })
}

func (q *question) answer(ctx context.Context, begun time.Time) {
	err := q.ask(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last.at, q.last.took, q.last.err = time.Now(), time.Since(begun), err
	if err == nil {
		q.last.since = begun
	}
	close(q.done)
	q.begun, q.done = time.Time{}, nil
}

// wait returns when no call runs any more.
func (q *question) wait() { q.asking.Wait() }
