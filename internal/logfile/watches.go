package logfile

import (
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/statusd/statusd/internal/wake"
)

// Watches reports changes of the followed logs. All logs share one descriptor, since a user has
// few, and one goroutine; both exist only while a log is followed.
type Watches struct {
	setup   sync.Mutex // guards watcher, and is held while watches are added and removed
	watcher *fsnotify.Watcher

	// mu guards followers. It is not held during calls of the watcher, which wait for events
	// to be taken.
	mu        sync.Mutex
	followers map[string]map[chan struct{}]bool // by directory
}

// Watch returns a channel that reports changes in a directory until stop is called. Where the
// kernel cannot report them the channel stays silent.
func (w *Watches) Watch(dir string) (changed <-chan struct{}, stop func()) {
	signal := make(chan struct{}, 1) // one that is pending is enough
	w.setup.Lock()
	defer w.setup.Unlock()
	if w.watcher == nil {
		if watcher, err := fsnotify.NewWatcher(); err == nil {
			w.watcher = watcher
			go w.report(watcher)
		}
	}
	if w.add(dir, signal) && w.watcher != nil {
		_ = w.watcher.Add(dir) // what cannot be watched is looked at
	}
	return signal, func() { w.unwatch(dir, signal) }
}

// add reports whether the directory had no follower.
func (w *Watches) add(dir string, signal chan struct{}) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followers == nil {
		w.followers = map[string]map[chan struct{}]bool{}
	}
	first := w.followers[dir] == nil
	if first {
		w.followers[dir] = map[chan struct{}]bool{}
	}
	w.followers[dir][signal] = true
	return first
}

// remove reports whether the directory has no follower, and whether none has.
func (w *Watches) remove(dir string, signal chan struct{}) (last, none bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.followers[dir], signal)
	if last = len(w.followers[dir]) == 0; last {
		delete(w.followers, dir)
	}
	return last, len(w.followers) == 0
}

func (w *Watches) unwatch(dir string, signal chan struct{}) {
	w.setup.Lock()
	defer w.setup.Unlock()
	last, none := w.remove(dir, signal)
	if w.watcher == nil {
		return
	}
	if last {
		_ = w.watcher.Remove(dir) // which may have gone with the directory
	}
	if none {
		_ = w.watcher.Close() // ends report
		w.watcher = nil
	}
}

func (w *Watches) report(watcher *fsnotify.Watcher) {
	for {
		select {
		case event, open := <-watcher.Events:
			if !open {
				return
			}
			w.wake(filepath.Dir(event.Name))
		case _, open := <-watcher.Errors: // an overflow: all are looked at within a second
			if !open {
				return
			}
		}
	}
}

func (w *Watches) wake(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for signal := range w.followers[dir] {
		wake.Up(signal)
	}
}
