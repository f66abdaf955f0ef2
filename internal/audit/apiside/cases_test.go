package apiside

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/internal/sidetest"
)

// control is an API server that can be disturbed.
type control interface {
	config() *rest.Config
	// node is the name of the node.
	node() string
	// put makes a pod of a node; say changes the message of one of ours, and remove removes it.
	put(name, node string) types.UID
	say(name, message string)
	remove(name string)
	// label changes the Node, renew its lease; both are made the first time.
	label(value string)
	renew(holder string)
	down()
	up()
	// backup remembers what there is, and restore goes back to it.
	backup() (restore func())
}

// watched is a side under test.
type watched struct {
	*sidetest.Watched[*Side, audit.API]
}

// watchSide runs a side until the test ends.
func watchSide(t *testing.T, o Options) *watched {
	t.Helper()
	return &watched{sidetest.Watch(t, func(changed func(types.UID)) (*Side, error) {
		o.Changed = changed
		return New(o)
	})}
}

// awaitWatches waits until all watches are open.
func (w *watched) awaitWatches() {
	for {
		w.Side.mu.Lock()
		open := w.Side.pods.open && w.Side.nodes.open && (w.Side.lease.open || w.Side.lease.polls)
		w.Side.mu.Unlock()
		if open {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func known(f audit.API) bool  { return f.APIAnswer.Known() }
func silent(f audit.API) bool { return !known(f) }

func has(f audit.API, uid types.UID) bool { return f.APIPods[uid].Pod != nil }

// heldBy reports whether there is a lease with this holder. One that was just made has none.
func heldBy(f audit.API, holder string) bool {
	return f.Lease != nil && f.Lease.Spec.HolderIdentity != nil && *f.Lease.Spec.HolderIdentity == holder
}

// apiCases is what must hold of the side whatever the server is.
func apiCases(t *testing.T, begin func(t *testing.T) control) {
	const leasePace = 100 * time.Millisecond
	for name, run := range map[string]func(t *testing.T, c control, w *watched){
		"pods, node and lease": func(t *testing.T, c control, w *watched) {
			c.label("first")
			c.renew("first")
			uid := c.put("mine", c.node())
			other := c.put("elsewhere", "other")
			first := w.Await("a pod, the node and the lease", func(f audit.API) bool {
				return known(f) && has(f, uid) && f.NodeObject != nil && heldBy(f, "first")
			})
			if got := first.APIPods[uid]; got.Pod.Name != "mine" || got.At.IsZero() || has(first, other) {
				t.Errorf("got %+v", first.APIPods)
			}
			if first.NodeObject.Name != c.node() || first.NodeAt.IsZero() || first.LeaseAt.IsZero() || first.APIAnswer.From == "" || first.APIAnswer.Since.IsZero() {
				t.Errorf("got %+v", first)
			}
			c.say("mine", "changed")
			c.label("second")
			c.renew("second")
			second := w.Await("three changes", func(f audit.API) bool {
				return has(f, uid) && f.APIPods[uid].Pod.Status.Message == "changed" && f.NodeObject.Labels["test"] == "second" && heldBy(f, "second")
			})
			if first.APIPods[uid].Pod.Status.Message != "" || !second.LeaseAt.After(first.LeaseAt) || !second.NodeAt.After(first.NodeAt) || !second.APIPods[uid].At.After(first.APIPods[uid].At) {
				t.Errorf("got %+v, then %+v", first, second)
			}
			c.remove("mine")
			w.Await("no pod", func(f audit.API) bool { return known(f) && !has(f, uid) })
		},
		"an outage": func(t *testing.T, c control, w *watched) {
			c.label("x")
			uid := c.put("stays", c.node())
			w.Await("a pod and the node", func(f audit.API) bool { return has(f, uid) && f.NodeObject != nil })
			c.down()
			before := w.Await("silence", silent)
			if !has(before, uid) || before.NodeObject == nil || before.APIAnswer.Silent.IsZero() || before.APIAnswer.At.IsZero() || !before.APIAnswer.Since.IsZero() {
				t.Errorf("got %+v, want what it said last", before)
			}
			c.up()
			after := w.Await("an answer", known)
			if !has(after, uid) || !after.APIAnswer.Since.After(before.APIAnswer.Silent) {
				t.Errorf("got %+v", after)
			}
			late := c.put("late", c.node())
			w.Await("a new pod", func(f audit.API) bool { return has(f, late) })
			if restored := w.Side.Facts().APIRestored; !restored.IsZero() {
				t.Errorf("a server that was away is taken for a restored one, at %v", restored)
			}
		},
		"a backup": func(t *testing.T, c control, w *watched) {
			old := c.put("old", c.node())
			w.Await("a pod", func(f audit.API) bool { return has(f, old) })
			restore := c.backup()
			lost := c.put("lost", c.node())
			for i := range 200 { // more versions than the server itself uses when it starts again
				c.say("old", string("abcd"[i%4]))
			}
			w.Await("what will be lost", func(f audit.API) bool { return known(f) && has(f, lost) && f.APIPods[old].Pod.Status.Message == "d" })
			restore()
			w.Side.Confirm()
			w.Await("the backup", func(f audit.API) bool {
				return known(f) && has(f, old) && !has(f, lost) && f.APIPods[old].Pod.Status.Message == ""
			})
			w.Side.Confirm()
			w.Await("that it was restored", func(f audit.API) bool { return !f.APIRestored.IsZero() })
			late := c.put("late", c.node())
			w.Await("a new pod", func(f audit.API) bool { return has(f, late) })
		},
		"the clock": func(t *testing.T, _ control, w *watched) {
			facts := w.Side.Facts()
			if facts.ClockAt.IsZero() || facts.Clock.Abs() > facts.ClockError {
				t.Errorf("got %v ± %v, want the clock of this machine", facts.Clock, facts.ClockError)
			}
		},
		"a confirmation": func(t *testing.T, c control, w *watched) {
			uid := c.put("here", c.node())
			w.Await("a pod", func(f audit.API) bool { return has(f, uid) })
			after := time.Now()
			w.Side.Confirm()
			for w.Side.Facts().APIConfirmed.Before(after) {
				time.Sleep(time.Millisecond)
			}
		},
		"requests": func(t *testing.T, c control, w *watched) {
			w.awaitWatches()
			began := time.Now() // before the count: a read between the two would be counted in too short a time
			before := w.Side.Requests()
			for range 20 {
				c.renew("again")
			}
			c.renew("last")
			w.Await("it", func(f audit.API) bool { return heldBy(f, "last") })
			after := w.Side.Requests()
			paced := int(time.Since(began)/leasePace) + 1 // the lease is read at its pace, however often it changes
			if after["WATCH"] != before["WATCH"] || int(after["LIST"]-before["LIST"]) > paced {
				t.Errorf("got requests %v after %v, want %d reads of the lease at most and none for changes", after, before, paced)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin(t)
			w := watchSide(t, Options{Config: c.config(), Node: c.node(), LeasePace: leasePace})
			w.Await("the first answer", known)
			run(t, c, w)
		})
	}
}
