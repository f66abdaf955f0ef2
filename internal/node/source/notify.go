package source

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/statusd/statusd/internal/wake"
)

// fsNotifier watches a directory through the kernel, and its parent while the directory
// does not exist. Its goroutine ends with close.
type fsNotifier struct {
	directory string
	parent    string
	watcher   *fsnotify.Watcher
	changed   chan struct{} // one pending signal is enough: the reader reads everything
	done      sync.WaitGroup
}

func newNotifier(directory string) (notifier, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("source: watch %s: %w", directory, err)
	}
	n := &fsNotifier{
		directory: directory,
		parent:    filepath.Dir(directory),
		watcher:   watcher,
		changed:   make(chan struct{}, 1),
	}
	n.done.Go(n.forward)
	return n, nil
}

// forward turns events into signals until the watcher is closed.
func (n *fsNotifier) forward() {
	for {
		select {
		case event, ok := <-n.watcher.Events:
			if !ok {
				return
			}
			if event.Name != n.directory && filepath.Dir(event.Name) != n.directory {
				continue // a sibling of the directory
			}
		case _, ok := <-n.watcher.Errors: // events were lost: read everything
			if !ok {
				return
			}
		}
		wake.Up(n.changed)
	}
}

// rearm returns no error: the next rescan finds changes that cannot be watched.
func (n *fsNotifier) rearm() {
	if n.watcher.Add(n.directory) != nil {
		_ = n.watcher.Add(n.parent)
		if n.watcher.Add(n.directory) != nil { // unless it was created just now
			return
		}
	}
	_ = n.watcher.Remove(n.parent)
}

func (n *fsNotifier) changes() <-chan struct{} { return n.changed }

func (n *fsNotifier) close() {
	_ = n.watcher.Close() // it only stops watching
	n.done.Wait()
}
