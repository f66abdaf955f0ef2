package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodStatus is the newest status of a pod.
type PodStatus struct {
	UID       types.UID
	Namespace string
	Name      string
	Version   uint64
	// Finished: the pod was terminated with [Manager.TerminatePod].
	Finished bool
	Status   v1.PodStatus
}

// Statuses returns copies of the newest statuses of all pods, by name.
func (m *Manager) Statuses() []PodStatus {
	snapshots := m.cache.snapshots()
	list := make([]PodStatus, 0, len(snapshots))
	for uid, s := range snapshots {
		list = append(list, PodStatus{UID: uid, Namespace: s.namespace, Name: s.name, Version: s.version, Finished: s.finished, Status: *s.status.DeepCopy()})
	}
	slices.SortFunc(list, func(a, b PodStatus) int {
		return cmp.Or(compareNames(a.Namespace, a.Name, b.Namespace, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	return list
}

// Pending is a pod with outstanding work in the API, or in the journal if its disk is slow.
type Pending struct {
	UID       types.UID
	Namespace string
	Name      string
	// Version is the newest version, Accepted the newest version that the API server has accepted.
	// If they are equal, the deletion of the pod is outstanding, or the work in Reason.
	Version  uint64
	Accepted uint64
	// Since is when the first change after Accepted was made.
	Since time.Time
	// Attempts counts the failed attempts, Err is the last error, if any, and NextTry is when the
	// next attempt is due.
	Attempts int
	Err      error
	NextTry  time.Time
	// Reason is what the pod waits for, if not for the API server.
	Reason string
	// Refused are the fields that the API server refuses, such as "status.qosClass". The server has
	// the rest of the status; Err is the refusal.
	Refused []string
}

// Pending returns the pods with outstanding work in the API, the longest wait first.
func (m *Manager) Pending() []Pending {
	list := m.writes.explain(m.cache.pending(), time.Now(), m.cache.describeAny)
	slices.SortFunc(list, func(a, b Pending) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return compareNames(a.Namespace, a.Name, b.Namespace, b.Name)
	})
	return list
}

// snapshots returns the newest of each pod. They are never changed.
func (c *cache) snapshots() map[types.UID]*snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[types.UID]*snapshot, len(c.entries))
	for uid, e := range c.entries {
		all[uid] = e.snapshot
	}
	return all
}

func (c *cache) pending() []Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standalone {
		return nil
	}
	var list []Pending
	for uid, e := range c.entries {
		if e.pending() || e.backlog != nil && (e.backlog.attempts > 0 || e.backlog.reason == waitFight || e.backlog.reason == waitOverruled) {
			list = append(list, c.describe(uid, e))
		}
	}
	return list
}

// fighting returns the pods whose newest version another writer keeps changing back.
func (c *cache) fighting() []Fight {
	c.mu.Lock()
	defer c.mu.Unlock()
	var fights []Fight
	now := time.Now()
	for uid, f := range c.fights {
		if e := c.entries[uid]; f.lasts(e.version, now) {
			fights = append(fights, Fight{UID: uid, Namespace: e.namespace, Name: e.name,
				Rounds: f.rounds, Writer: f.writer, Last: f.last})
		}
	}
	return fights
}

func (c *cache) countUnsent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.unsent)
}

func (c *cache) oldestUnsent(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest time.Duration
	for _, e := range c.unsent {
		oldest = max(oldest, now.Sub(e.backlog.since))
	}
	return oldest
}

func (c *cache) describe(uid types.UID, e *entry) Pending {
	p := Pending{UID: uid, Namespace: e.namespace, Name: e.name, Version: e.version, Accepted: e.accepted}
	if o := e.backlog; o != nil {
		p.Since, p.Attempts, p.Err, p.NextTry, p.Reason = o.since, o.attempts, o.lastErr, o.nextTry, o.reason.String()
		for _, field := range o.refusal.fields {
			p.Refused = append(p.Refused, "status."+field)
		}
	}
	if p.Reason == "" && c.withholds(e.snapshot) {
		p.Reason = waitWithheld.String() // before the first turn, too
	}
	c.stall.explain(&p)
	return p
}

// describeAny describes a pod that is in the cache.
func (c *cache) describeAny(uid types.UID) (Pending, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok {
		return Pending{}, false
	}
	return c.describe(uid, e), true
}

func compareNames(namespaceA, nameA, namespaceB, nameB string) int {
	return cmp.Or(strings.Compare(namespaceA, namespaceB), strings.Compare(nameA, nameB))
}

// goal is what Flush waits for: that the API server has a version; or that the pod was checked once
// more and its terminal phase is still withheld.
type goal struct {
	version  uint64
	withheld bool
	looks    int
}

// goals returns what Flush waits for.
func (c *cache) goals() map[types.UID]goal {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := make(map[types.UID]goal, len(c.unsent))
	for uid, e := range c.unsent {
		wanted[uid] = goal{version: e.version, withheld: e.waitsFor() == waitWithheld || e.waitsFor() == waitEnding, looks: e.looks()}
	}
	return wanted
}

// looks counts how often the pod was checked while its terminal phase is withheld.
func (e *entry) looks() int {
	if e.waitsFor() != waitWithheld {
		return 0
	}
	return e.backlog.attempts
}

// delivered reports whether the API server has accepted a version, or the pod need not be delivered any more,
// and returns a channel that is closed when that may have changed.
func (c *cache) delivered(uid types.UID, want goal) (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.unsent[uid]
	return !ok || e.accepted >= want.version || e.looks() > want.looks, c.progress
}

// undelivered returns an error that names the pods whose wanted versions were not accepted, or nil.
func (c *cache) undelivered(wanted map[types.UID]goal, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []Pending
	for uid, want := range wanted {
		if e, ok := c.unsent[uid]; ok && e.accepted < want.version {
			left = append(left, c.describe(uid, e))
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.SortFunc(left, func(a, b Pending) int { return compareNames(a.Namespace, a.Name, b.Namespace, b.Name) })
	return &FlushError{Left: left, err: err}
}

// FlushError lists the pods that could not be delivered in time.
type FlushError struct {
	Left []Pending
	err  error
}

func (e *FlushError) Error() string {
	first := e.Left[0]
	why := first.Reason
	if first.Err != nil {
		why = first.Err.Error()
	}
	if why != "" {
		why = ": " + why
	}
	return fmt.Sprintf("status: flush: %d pods are not delivered, the first is %s/%s (version %d, the API server has %d)%s: %v",
		len(e.Left), first.Namespace, first.Name, first.Version, first.Accepted, why, e.err)
}

func (e *FlushError) Unwrap() error { return e.err }
