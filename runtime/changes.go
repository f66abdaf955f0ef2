package runtime

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
)

// Changes implements the Watch of a runtime: code that changes a pod calls Notify, and
// each watcher gets it. The zero value is ready. All methods may be called from any
// goroutine.
type Changes struct {
	mu       sync.Mutex // guards watchers
	watchers map[*watcher]struct{}
}

// watcher collects what one receiver has not yet received.
type watcher struct {
	mu      sync.Mutex // guards pending and queued
	pending []types.UID
	queued  map[types.UID]struct{}
	wake    chan struct{} // capacity 1: a wake-up that waits is enough for all
}

// Notify delivers to all watchers that a pod has changed. It never blocks on a watcher.
func (c *Changes) Notify(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w.add(uid)
	}
}

// Watch does what [Runtime] asks of it. Its goroutine ends with ctx.
func (c *Changes) Watch(ctx context.Context) <-chan types.UID {
	w := &watcher{queued: map[types.UID]struct{}{}, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	if c.watchers == nil {
		c.watchers = map[*watcher]struct{}{}
	}
	c.watchers[w] = struct{}{}
	c.mu.Unlock()

	out := make(chan types.UID) // unbuffered: what is not yet received can still merge
	go func() {
		defer close(out)
		defer c.drop(w)
		w.deliver(ctx, out)
	}()
	return out
}

func (c *Changes) drop(w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, w)
}

func (w *watcher) add(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.queued[uid]; waits {
		return
	}
	w.queued[uid] = struct{}{}
	w.pending = append(w.pending, uid)
	wake.Up(w.wake)
}

// take removes the pod to deliver from the queue before it is sent: a change that comes
// while the receiver already looks at the pod must queue it again, never merge into
// the past.
func (w *watcher) take() (types.UID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 {
		return "", false
	}
	uid := w.pending[0]
	w.pending = w.pending[1:]
	delete(w.queued, uid)
	return uid, true
}

func (w *watcher) deliver(ctx context.Context, out chan<- types.UID) {
	for {
		uid, ok := w.take()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-w.wake:
				continue
			}
		}
		select {
		case <-ctx.Done():
			return
		case out <- uid:
		}
	}
}
