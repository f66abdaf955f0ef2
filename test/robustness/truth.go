package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/test/robustness/agent"
	"github.com/statusd/statusd/test/robustness/record"
)

// pod is what is true of a pod on the node: its containers, and what was said of them to the manager.
type pod struct {
	object         *v1.Pod
	verb           string       // of the last report: record.Run, Exit or Evict; empty: there was none
	facts          record.Facts // of the last report
	kept           bool         // the manager has acknowledged the end that was reported: the node may forget it
	finished       bool         // all containers have ended, and TerminatePod was called
	call           int64        // that is on; 0: none
	deleting, gone bool         // in the API
	back           bool         // the manager does not know what is true: a restore brought the pod back, or a call was refused
	actual         record.Facts
}

// truth is the node's own knowledge, which survives the agent, as a container runtime does. It forgets the end of a pod when the
// manager has acknowledged it.
type truth struct {
	mu    sync.Mutex // guards what follows
	slots []*pod     // by number of the name; nil: to be created
	pods  map[string]*pod
	last  int64 // call
	calls map[int64]call
	count int // of changes
}

type call struct {
	*pod
	verb string
}

func newTruth(size int) *truth {
	return &truth{slots: make([]*pod, size), pods: map[string]*pod{}, calls: map[int64]call{}}
}

func slotName(slot int) string { return fmt.Sprintf("pod-%03d", slot) }

// stored takes in a version of the API's pod. One that is not known was created, or is back by the restore of a backup.
func (t *truth) stored(object *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pods[string(object.UID)]
	if p == nil {
		p = &pod{object: object}
		t.pods[string(object.UID)] = p
	}
	p.back = p.back || p.gone
	p.gone, p.deleting, p.actual = false, object.DeletionTimestamp != nil, *record.FactsOf(object)
	if slot := slices.IndexFunc(t.slots, func(other *pod) bool { return other != nil && other.object.Name == object.Name }); slot >= 0 {
		if t.slots[slot] != p {
			t.slots[slot] = p
		}
		return
	}
	var slot int
	if _, err := fmt.Sscanf(object.Name, "pod-%03d", &slot); err == nil && slot < len(t.slots) {
		t.slots[slot] = p
	}
}

// removed takes in that the API has the pod no more.
func (t *truth) removed(uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pods[uid]
	if p == nil {
		return
	}
	p.gone, p.call = true, 0
	for id, c := range t.calls {
		if c.pod == p { // the agent may never see the pod that the call is for
			delete(t.calls, id)
		}
	}
	for slot, other := range t.slots {
		if other == p {
			t.slots[slot] = nil
		}
	}
}

// returned takes in the answer to a call.
func (t *truth) returned(r record.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.calls[r.ID]
	if !ok {
		return
	}
	delete(t.calls, r.ID)
	if c.call == r.ID {
		c.call = 0
	}
	switch {
	case r.Err != "" && !r.Warning: // nothing was stored
		c.back = true
	case r.Over: // a process that was killed while it took an eviction has kept that: it stands
		c.pod.verb, c.kept, c.facts.Phase, c.facts.Ready, c.facts.Number = record.Evict, true, v1.PodFailed, false, record.Any
	case r.Kept && (c.verb == record.Exit || c.verb == record.Evict):
		c.kept = true
	}
}

// command makes a call of a pod. It needs the lock.
func (t *truth) command(p *pod, verb string, facts record.Facts) agent.Command {
	t.last++
	p.call = t.last
	t.calls[t.last] = call{p, verb}
	return agent.Command{ID: t.last, Verb: verb, UID: p.object.UID, Facts: &facts}
}

// report changes what is true of a pod, and returns the call that says so. It needs the lock.
func (t *truth) report(p *pod, verb string, change func(*record.Facts)) agent.Command {
	change(&p.facts)
	t.count++
	switch verb {
	case record.Terminate:
		p.finished = true
	case record.Flip:
	default:
		p.facts.Number++
		p.verb, p.kept = verb, false
	}
	return t.command(p, verb, p.facts)
}

// step changes something of a random pod. The deletion of a pod is requested by the caller, as is a new one for the slot.
func (t *truth) step(random *rand.Rand) (commands []agent.Command, remove *v1.Pod, create int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := random.IntN(len(t.slots))
	p := t.slots[slot]
	dice := random.IntN(100)
	switch {
	case p == nil:
		return nil, nil, slot
	case p.call != 0 || p.finished && p.deleting:
		return nil, nil, -1
	case p.back && p.verb != "":
		if c, ok := t.again(p); ok {
			commands = append(commands, c)
		}
	case p.verb == record.Evict && dice < 70:
	case p.finished, p.verb == record.Exit && dice < 30 && !p.deleting:
		return nil, p.object, -1
	case p.verb == record.Exit || p.verb == record.Evict:
		commands = append(commands, t.report(p, record.Terminate, func(f *record.Facts) {}))
	case p.verb == "":
		commands = append(commands, t.report(p, record.Run, func(f *record.Facts) { f.Phase, f.Ready = v1.PodRunning, dice < 50 || steady(slot) }))
	case steady(slot) && !p.deleting && random.IntN(seldom) > 0:
	case p.deleting || dice < 6:
		commands = append(commands, t.report(p, record.Exit, exit(int32(dice%3))))
	case dice < 8:
		commands = append(commands, t.report(p, record.Evict, func(f *record.Facts) { f.Phase, f.Ready = v1.PodFailed, false }))
	case dice < 10:
		commands = append(commands, t.report(p, record.Terminate, func(f *record.Facts) { f.Phase, f.Ready = v1.PodFailed, false }))
	case dice < 12:
		return nil, p.object, -1
	case dice < 60:
		commands = append(commands, t.report(p, record.Flip, func(f *record.Facts) { f.Ready = !f.Ready }))
	default:
		commands = append(commands, t.report(p, record.Run, func(f *record.Facts) { f.Ready = dice%2 == 0 }))
	}
	return commands, nil, -1
}

// seldom is how much more rarely a steady pod changes than others.
const seldom = 50

// steady reports whether the pods of a slot hardly change: only about such a pod can two writers fight for long.
func steady(slot int) bool { return slot%5 == 0 }

func exit(code int32) func(*record.Facts) {
	return func(f *record.Facts) {
		f.Phase, f.Ready, f.Exit = v1.PodSucceeded, false, code
		if code != 0 {
			f.Phase = v1.PodFailed
		}
	}
}

// lost is what a new process of the agent reports, as one that looks at its containers: all but the ends that the manager has acknowledged as
// durable. Calls that were on have no outcome.
func (t *truth) lost() (commands []agent.Command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.calls)
	for _, p := range t.pods {
		p.call = 0
		if p.gone || p.verb == "" {
			continue
		}
		missing := t.missing
		if p.back {
			missing = t.again
		}
		if c, ok := missing(p); ok {
			commands = append(commands, c)
		}
	}
	return commands
}

// missing is the call that says again what may be lost of a pod. It needs the lock.
func (t *truth) missing(p *pod) (agent.Command, bool) {
	ended := p.verb == record.Exit || p.verb == record.Evict
	switch {
	case p.finished && p.verb == record.Exit && !p.kept:
		p.finished = false // the end of the containers first
	case p.finished:
		if p.verb != record.Exit {
			p.facts.Number = record.Any // the last report may be lost: TerminatePod does not repeat it
		}
		return t.command(p, record.Terminate, p.facts), true
	case ended && p.kept:
		return agent.Command{}, false
	case p.verb == record.Evict: // the container runs, which this process of the agent has yet to report
		p.verb, p.facts.Phase = record.Run, v1.PodRunning
	}
	return t.command(p, p.verb, p.facts), true
}

// again says again what is true of a pod that is back. It needs the lock.
func (t *truth) again(p *pod) (agent.Command, bool) {
	p.back, p.kept = false, false
	return t.missing(p)
}

// settle ends what is half done before a calm: pods that are to be evicted end, and so do those that are deleted. Ends that could not be
// made durable are reported again.
func (t *truth) settle() (commands []agent.Command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.pods {
		if p.gone || p.call != 0 {
			continue
		}
		switch {
		case p.back && p.verb != "":
			if c, ok := t.again(p); ok {
				commands = append(commands, c)
			}
		case p.finished:
		case p.verb == "":
			commands = append(commands, t.report(p, record.Run, func(f *record.Facts) { f.Phase = v1.PodRunning }))
		case p.verb == record.Evict, p.deleting:
			commands = append(commands, t.report(p, record.Terminate, func(f *record.Facts) {
				if p.verb == record.Run {
					f.Phase, f.Ready = v1.PodFailed, false
				}
			}))
		}
	}
	return commands
}

// busy is how many calls are on.
func (t *truth) busy() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

// wants is what the API has to have of each pod.
func (t *truth) wants() (wants []record.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, p := range t.pods {
		if p.gone || p.verb == "" {
			continue
		}
		facts := p.facts
		wants = append(wants, record.Record{Kind: record.Want, UID: uid, Name: p.object.Name, Facts: &facts, Absent: p.finished && p.deleting})
	}
	return wants
}

// differing names the pods of which the API has something else.
func (t *truth) differing() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.pods {
		switch {
		case p.gone || p.verb == "":
		case p.finished && p.deleting:
			names = append(names, p.object.Name+" is still there")
		case !p.facts.Agrees(&p.actual):
			names = append(names, fmt.Sprintf("%s: the node has %+v, the API %+v", p.object.Name, p.facts, p.actual))
		}
	}
	return names
}

// any is a random pod of those in the API; empty if there is none in the slot.
func (t *truth) any(random *rand.Rand) (uid, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.slots[random.IntN(len(t.slots))]; p != nil {
		return string(p.object.UID), p.object.Name
	}
	return "", ""
}

// existing are the names of the pods that the API has, by UID.
func (t *truth) existing() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := map[string]string{}
	for uid, p := range t.pods {
		if !p.gone {
			names[uid] = p.object.Name
		}
	}
	return names
}
