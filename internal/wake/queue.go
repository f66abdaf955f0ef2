package wake

import "sync"

// Queue has values in the order in which they came, each once. All methods may be called from any goroutine. Make it
// with [NewQueue].
type Queue[T comparable] struct {
	wake chan struct{} // capacity 1: one wake-up stands for any number of values

	mu     sync.Mutex // guards what follows
	values []T
	queued map[T]bool
}

// NewQueue returns an empty queue.
func NewQueue[T comparable]() *Queue[T] {
	return &Queue[T]{wake: make(chan struct{}, 1), queued: map[T]bool{}}
}

// Add puts a value at the end unless the queue has it. Add never blocks.
func (q *Queue[T]) Add(value T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queued[value] {
		return
	}
	q.queued[value] = true
	q.values = append(q.values, value)
	Up(q.wake)
}

// Take removes the first value, before the caller works on it: a value that is added during that work is queued again.
func (q *Queue[T]) Take() (value T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.values) == 0 {
		return value, false
	}
	value, q.values = q.values[0], q.values[1:]
	delete(q.queued, value)
	return value, true
}

// Added has a signal after values were added. A single receiver that takes values until the queue is empty misses
// no value.
func (q *Queue[T]) Added() <-chan struct{} { return q.wake }
