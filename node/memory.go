package node

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/statusd/statusd/internal/wholefile"
)

// Memory is the state of a Node object that outlives a [Node] value: a program that creates another Node, as after a
// reload of its config, passes the same Memory. A nil Memory stores nothing.
type Memory struct {
	// CordonFile is a file that exists while the Node is unschedulable, so that a deleted Node comes back
	// unschedulable with the next start of the program. Empty: the cordon is not stored.
	CordonFile string

	mu    sync.Mutex // guards known
	known bool       // the Node has existed since the start of the program
}

// wasRegistered reports whether the Node has existed since the start of the program.
func (m *Memory) wasRegistered() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// registered records that the Node exists.
func (m *Memory) registered() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = true
}

// wasCordoned reports whether the Node was unschedulable when it was last seen.
func (m *Memory) wasCordoned() bool {
	if m == nil || m.CordonFile == "" {
		return false
	}
	_, err := os.Stat(m.CordonFile)
	return err == nil
}

// noteCordon records whether the Node is unschedulable.
func (m *Memory) noteCordon(cordoned bool) error {
	if m == nil || m.CordonFile == "" || cordoned == m.wasCordoned() {
		return nil
	}
	if cordoned {
		return wholefile.Write(m.CordonFile, []byte("the Node was unschedulable when statusd last saw it\n"))
	}
	if err := os.Remove(m.CordonFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isKnown reports whether the Node has existed since the start of the program.
func (n *Node) isKnown() bool { return n.UID() != "" || n.o.Memory.wasRegistered() }

// setDeleted records whether the Node is deleted, and logs the change.
func (n *Node) setDeleted(deleted bool) {
	if deleted == n.deleted {
		return
	}
	if n.deleted = deleted; deleted {
		n.log.Warn("the Node was deleted from the API: it is not registered again until the next start")
	} else {
		n.log.Info("the Node is in the API again")
	}
}
