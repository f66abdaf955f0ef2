package process

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Listeners are called when something about a pod has changed, or, with an empty UID, about the node.
// The zero value works.
type Listeners struct {
	mu        sync.Mutex // guards listeners
	listeners map[int]func(types.UID)
	last      int
}

// Announce calls all listeners. Announce must not wait: it is called under the locks of others.
func (l *Listeners) Announce(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, listener := range l.listeners {
		listener(uid)
	}
}

// Listen calls a function for each change until ctx ends. The function returns at once. The first calls are for the node and for
// the present pods: a change between the caller's last read and Listen is not missed.
func (l *Listeners) Listen(ctx context.Context, changed func(types.UID), present func() []types.UID) {
	l.mu.Lock()
	if l.listeners == nil {
		l.listeners = map[int]func(types.UID){}
	}
	l.last++
	number := l.last
	l.listeners[number] = changed
	l.mu.Unlock()
	changed("")
	for _, uid := range present() {
		changed(uid)
	}
	<-ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listeners, number)
}
