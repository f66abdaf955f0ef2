package history

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
)

// Store keeps the history of a node. All methods may be called from any goroutine.
type Store struct {
	opts    Options
	inbox   inbox
	arrived chan struct{} // capacity 1: the inbox is no longer empty
	create  func(path string) (file, error)

	// mu guards the fields below. Reporters do not take it.
	mu    sync.Mutex
	logs  map[types.UID]*log // the node's is under the empty UID
	named map[podName][]*log // the same by name: few pods have the same
	total int                // entries of all logs
	seq   uint64             // the last sequence number that was given
	// forgotten is the highest sequence number of a change that was dropped, or that was lost before
	// it got one.
	forgotten uint64
	// progress is closed and replaced when there is something new.
	progress chan struct{}
	spare    []input
	purged   time.Time // when pods that are gone were last looked for
	unwritten
}

// New returns a store. New reads the file, if there is one, and starts nothing.
func New(options Options) *Store {
	options.setDefaults()
	s := &Store{
		opts:     options,
		inbox:    inbox{limit: options.Batch},
		arrived:  make(chan struct{}, 1),
		create:   createFile,
		logs:     make(map[types.UID]*log),
		named:    make(map[podName][]*log),
		progress: make(chan struct{}),
	}
	s.load(time.Now())
	return s
}

// Pod returns the history of the newest pod of a name.
func (s *Store) Pod(namespace, name string) (Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	var newest *log
	for _, l := range s.named[podName{namespace, name}] {
		if l.ref.UID != "" && (newest == nil || compareAge(newest, l) < 0) {
			newest = l
		}
	}
	if newest == nil {
		return Pod{}, false
	}
	return newest.pod(), true
}

// podName is what pods of different times may share.
type podName struct{ namespace, name string }

func (l *log) name() podName { return podName{l.ref.Namespace, l.ref.Name} }

// keep adds a history. A query by name must not look at all pods: each change of a pod asks for one.
func (s *Store) keep(l *log) {
	s.logs[l.ref.UID] = l
	s.named[l.name()] = append(s.named[l.name()], l)
}

// Pods returns the histories of all pods, including deleted ones, by name and age.
func (s *Store) Pods() []Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	list := make([]Pod, 0, len(s.logs))
	for _, l := range sorted(s.logs) {
		if l.ref.UID != "" {
			list = append(list, l.pod())
		}
	}
	return list
}

// Gone returns the histories of the pods that are gone, by name and age.
func (s *Store) Gone() []Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	var list []Pod
	for _, l := range sorted(s.logs) {
		if l.gone != 0 {
			list = append(list, l.pod())
		}
	}
	return list
}

// Node returns the history of the node itself.
func (s *Store) Node() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	if l, ok := s.logs[""]; ok {
		return l.pod().Records
	}
	return nil
}

// Retain takes that those pods are gone which the function does not name: they went while no process
// kept the history. Call it once all pods of the node are known.
func (s *Store) Retain(has func(types.UID) bool, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	var gone []types.UID
	for uid, l := range s.logs {
		if uid != "" && l.gone == 0 && !has(uid) {
			gone = append(gone, uid)
		}
	}
	slices.Sort(gone)
	for _, uid := range gone {
		s.takeRemoval(s.logs[uid], unixNano(at))
	}
	if len(gone) > 0 {
		s.progressed()
		wake.Up(s.arrived) // to have it written
	}
}

// Seq returns the number of the last change: a watch from there gets the next changes.
func (s *Store) Seq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	return s.seq
}

// compareAge orders the pods of a name: an existing pod is newer than a deleted one.
func compareAge(a, b *log) int {
	if (a.gone == 0) != (b.gone == 0) {
		return cmp.Compare(b.gone, a.gone)
	}
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.changed, b.changed), cmp.Compare(a.ref.UID, b.ref.UID))
}

func sorted(logs map[types.UID]*log) []*log {
	list := make([]*log, 0, len(logs))
	for _, l := range logs {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *log) int {
		return cmp.Or(strings.Compare(a.ref.Namespace, b.ref.Namespace), strings.Compare(a.ref.Name, b.ref.Name), compareAge(a, b))
	})
	return list
}
