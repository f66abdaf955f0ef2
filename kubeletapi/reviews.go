package kubeletapi

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// cachedReviews bounds the answers that are remembered of each kind.
	cachedReviews = 8192
	// reviewTimeout bounds one question to the API server.
	reviewTimeout = 10 * time.Second
	// reviewsAtOnce bounds the questions of one kind: a client without credentials can make this node ask
	// as often as it makes up a token.
	reviewsAtOnce = 32
)

// reviews remembers the answers of the API server for some time. Requests that need the same answer at the same time
// cause one question.
type reviews[V any] struct {
	answers *cache.LRUExpireCache
	slots   chan struct{} // one per question under way

	mu      sync.Mutex // guards pending
	pending map[string]*question[V]
}

// question is a review in progress; done is closed when answer and err are set.
type question[V any] struct {
	done   chan struct{}
	answer V
	err    error
	gone   bool // the client that asked has left before the answer
}

func newReviews[V any]() *reviews[V] {
	return &reviews[V]{
		answers: cache.NewLRUExpireCache(cachedReviews),
		slots:   make(chan struct{}, reviewsAtOnce),
		pending: map[string]*question[V]{},
	}
}

// get returns the answer for a key, asking for it if it is not remembered. An answer is remembered as long as
// ask says; an error is not.
func (r *reviews[V]) get(ctx context.Context, key string, ask func(context.Context) (V, time.Duration, error)) (V, error) {
	for {
		if answer, ok := r.answers.Get(key); ok {
			return answer.(V), nil
		}
		q, mine := r.join(key)
		if mine {
			r.ask(ctx, key, q, ask)
			return q.answer, q.err
		}
		select {
		case <-q.done:
			if !q.gone {
				return q.answer, q.err
			}
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
}

// join returns the question in progress for a key, or a new question for the caller to ask.
func (r *reviews[V]) join(key string) (q *question[V], mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q, ok := r.pending[key]; ok {
		return q, false
	}
	q = &question[V]{done: make(chan struct{})}
	r.pending[key] = q
	return q, true
}

func (r *reviews[V]) ask(client context.Context, key string, q *question[V], ask func(context.Context) (V, time.Duration, error)) {
	defer func() {
		q.gone = q.err != nil && client.Err() != nil
		r.mu.Lock()
		delete(r.pending, key)
		r.mu.Unlock()
		close(q.done)
	}()
	ctx, cancel := context.WithTimeout(client, reviewTimeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		q.err = ctx.Err()
		return
	}
	var keep time.Duration
	q.answer, keep, q.err = ask(ctx)
	if q.err == nil && keep > 0 {
		r.answers.Add(key, q.answer, keep)
	}
}
