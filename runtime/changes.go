package runtime

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
)

// Changes implements the Watch method of a runtime: code that changes a pod calls Notify, and each
// watcher receives the UID. The zero value is ready to use. All methods may be called from any
// goroutine.
type Changes struct {
	mu       sync.Mutex // guards watchers
	watchers map[*watcher]struct{}
}

// watcher has what one receiver has not yet received.
type watcher = wake.Queue[types.UID]

// Notify delivers to all watchers that a pod has changed. Notify never blocks on a watcher.
func (c *Changes) Notify(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w.Add(uid)
	}
}

// Watch implements the method of [Runtime]. Its goroutine ends with ctx.
func (c *Changes) Watch(ctx context.Context) <-chan types.UID {
	w := wake.NewQueue[types.UID]()
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
		deliver(ctx, w, out)
	}()
	return out
}

func (c *Changes) drop(w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, w)
}

func deliver(ctx context.Context, w *watcher, out chan<- types.UID) {
	for {
		uid, ok := w.Take()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-w.Added():
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
