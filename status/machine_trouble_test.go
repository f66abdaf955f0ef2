package status

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// machineDisk is the journal of one process on the machine's disk, which may be slow, hang or be full. What a
// process has not written when it dies is never written.
type machineDisk struct {
	*journal.Memory
	m *machine
	// mu guards dead.
	mu   sync.Mutex
	dead bool
}

type diskState struct {
	takes time.Duration
	full  bool
	hangs chan struct{} // nil, or until it is closed
}

var errDead = errors.New("the process has died")

func (d *machineDisk) write(write func() error) error {
	var disk diskState
	d.m.edit(func() { disk = d.m.disk })
	time.Sleep(disk.takes)
	if disk.hangs != nil {
		<-disk.hangs
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.dead:
		return errDead
	case disk.full:
		return errDiskFull
	}
	return write()
}

// writeEnd is a write after which the journal has the newest of the end of a pod.
func (d *machineDisk) writeEnd(uid types.UID, write func() error) error {
	d.m.edit(func() { d.m.outdated[uid] = true })
	err := d.write(write)
	if err == nil {
		d.m.edit(func() { delete(d.m.outdated, uid) })
	}
	return err
}

func (d *machineDisk) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
}

func (d *machineDisk) SetFinal(uid types.UID, final podstatus.Final) error {
	err := d.writeEnd(uid, func() error { return d.Memory.SetFinal(uid, final) })
	number, numbered := reportNumber(&final.Status)
	d.m.edit(func() {
		if err == nil && numbered && number == d.m.revived[uid] { // finished since, and as old as before
			d.m.outdated[uid] = true
		}
	})
	return err
}

func (d *machineDisk) DeleteFinal(uid types.UID) error {
	return d.writeEnd(uid, func() error { return d.Memory.DeleteFinal(uid) })
}

func (d *machineDisk) RemovePod(uid types.UID) error {
	return d.writeEnd(uid, func() error { return d.Memory.RemovePod(uid) })
}

func (d *machineDisk) RetainPods(keep func(types.UID) bool) (removed int, err error) {
	err = d.write(func() error { removed, err = d.Memory.RetainPods(keep); return err })
	return removed, err
}

func (d *machineDisk) RetainTerminations(uid types.UID, keep func(string) bool) error {
	return d.write(func() error { return d.Memory.RetainTerminations(uid, keep) })
}

// withdraw takes the readiness of a pod away. Whatever the disk does, the API knows of it at once, if nothing else is wrong.
func (m *machine) withdraw(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return alive(s) && s.reported > 0 && !s.static && m.owns(s) })
	if s == nil {
		return
	}
	m.report(s, running(s.pod, true))
	time.Sleep(time.Second)
	m.report(s, running(s.pod, false))
	within := time.Second
	var hung time.Time
	m.edit(func() { hung = m.hungUntil[s.pod.Namespace+"/"+s.pod.Name] })
	if left := time.Until(hung); left > 0 {
		within += left + time.Second // a pod is not tried again within a second
	}
	time.Sleep(within)
	if m.fault == nil && !m.hooked && !m.lag && !m.troubled && !m.unlisted() {
		m.checkGrave(s, fmt.Sprint(within, " after the report"))
	}
}

// unlisted reports whether the manager has not seen the API's pods yet. Nothing is sent before (invariant 7), and a first
// list that failed during a fault is tried again some seconds after its end.
func (m *machine) unlisted() bool {
	for _, p := range m.manager.Pending() {
		if p.Reason == stallUnlisted {
			return true
		}
	}
	return false
}

// setDisk makes the disk fast, slow, full or hang.
func (m *machine) setDisk(choices [3]int) {
	states := []diskState{{}, {takes: time.Second}, {full: true}, {hangs: make(chan struct{})}}
	m.replaceDisk(states[choices[0]%len(states)])
}

func (m *machine) replaceDisk(next diskState) {
	var before diskState
	m.edit(func() { before, m.disk = m.disk, next })
	if before.hangs != nil {
		close(before.hangs)
	}
}

// lostEnd reports whether an error says that an end was stored and the journal does not have it.
func lostEnd(err error) bool { return errors.Is(err, errDiskHangs) || errors.Is(err, errDiskFull) }

// terminate is TerminatePod, which may warn of the disk.
func (m *machine) terminate(s *subject) {
	if err := m.manager.TerminatePod(m.known(s)); err != nil && !lostEnd(err) {
		panic(err)
	}
	m.noteVersion(s)
}

// forSome answers the requests for some pods only with an error.
func forSome(fault func(statustest.Request) error) func(statustest.Request, int) error {
	return func(s statustest.Request, _ int) error {
		if name := s.PodName(); name != "" && name[len(name)-1]%2 == 1 {
			return fault(s)
		}
		return nil
	}
}

// singled are faults that only some pods meet.
var singled = []func(s statustest.Request, seq int) error{
	forSome(func(statustest.Request) error { return apierrors.NewUnauthorized("token expired") }),
	forSome(func(s statustest.Request) error {
		return apierrors.NewForbidden(podResource, s.PodName(), errors.New("policy"))
	}),
	forSome(func(statustest.Request) error { return statustest.Throttled(30) }),
}

// flap is a node whose lease is late again and again: the node lifecycle controller takes the readiness of
// its pods away.
func (m *machine) flap(choices [3]int) {
	for range 1 + choices[0]%6 {
		for _, s := range m.subjects {
			if !m.owns(s) {
				continue
			}
			m.edit(func() { s.contested = true })
			m.api.Change(s.pod, func(pod *v1.Pod) {
				if ready := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady); ready != nil && ready.Status == v1.ConditionTrue {
					ready.Status, ready.Reason, ready.LastTransitionTime = v1.ConditionFalse, "NodeNotReady", metav1.Now()
				}
			})
		}
		time.Sleep(time.Duration(20+choices[1]%100) * time.Second)
	}
}

// chat is a writer that is busy with the annotations of a pod while it loses readiness or ends, and the server is slow. If nothing
// else is wrong, the API knows of it within a quarter of a minute, or after the turn that is under way.
func (m *machine) chat(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return alive(s) && s.reported > 0 && !s.static && m.owns(s) })
	if s == nil {
		return
	}
	latency := []time.Duration{50 * time.Millisecond, time.Second, 2 * time.Second}[choices[1]%3]
	m.edit(func() { s.contested, m.busyWith = true, s })
	m.api.SetLatency(latency)
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() { m.annotate(s, latency*4/5, stop) })
	time.Sleep(2 * latency)
	within := healedWithin
	if slices.ContainsFunc(m.manager.Pending(), func(p Pending) bool { return p.UID == s.pod.UID }) {
		within += 5 * latency // a turn with an older status comes first: a write, a look, a write, and one in two parts
	}
	if choices[2]%2 == 0 {
		m.report(s, running(s.pod, false))
	} else {
		m.edit(func() { s.ended, s.running = true, false })
		m.report(s, ended(s.pod, 1))
	}
	time.Sleep(within)
	if m.fault == nil && !m.hooked && !m.lag && !m.troubled && m.owns(s) {
		m.checkGrave(s, fmt.Sprint(within, " while another writer is busy"))
	}
	close(stop)
	done.Wait()
	m.edit(func() { m.busyWith = nil })
	m.api.SetLatency(0)
}

func (m *machine) annotate(s *subject, every time.Duration, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
		if m.owns(s) {
			m.api.Change(s.pod, func(pod *v1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "chat", fmt.Sprint(i)) })
		}
	}
}

// checkGrave checks that the API has the readiness and the phase that the node reports, whatever others did.
func (m *machine) checkGrave(s *subject, when string) {
	cached := m.manager.cache.load(s.pod.UID)
	if cached == nil || !m.owns(s) || s.ended && s.running {
		return
	}
	api := &m.api.Pod(s.pod).Status
	over := podstatus.IsTerminal(api.Phase)
	switch {
	case !over && api.Phase != cached.status.Phase && cached.status.Phase != "":
		m.violated("never gives up: %s the API says that %s is %s, the node %s (pending %+v)", when, s.pod.Name, api.Phase, cached.status.Phase, m.manager.Pending())
	case !over && podstatus.FindCondition(cached.status.Conditions, v1.PodReady) != nil && isReady(api) != isReady(&cached.status):
		m.violated("never gives up: %s the API says ready=%v of %s, the node %v (pending %+v)", when, isReady(api), s.pod.Name, isReady(&cached.status), m.manager.Pending())
	}
}

// evictedBare is the status of an eviction that does not mention the containers, which still run.
func evictedBare() v1.PodStatus { return v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"} }

// mayEvictBare reports whether the manager can know that a container runs which a status does not mention.
func (m *machine) mayEvictBare(s *subject) bool {
	cached, ok := m.manager.GetPodStatus(s.pod.UID)
	return ok && !s.static && len(cached.ContainerStatuses) > 0 && cached.ContainerStatuses[0].State.Running != nil
}

// keepReady is a webhook that keeps a pod ready that is not.
func (m *machine) keepReady(p *v1.Pod) {
	if c := podstatus.FindCondition(p.Status.Conditions, v1.PodReady); c != nil && !podstatus.IsTerminal(p.Status.Phase) {
		c.Status, c.Reason = v1.ConditionTrue, ""
	}
}

// keepPhase is a webhook that keeps pods from ending.
func (m *machine) keepPhase(p *v1.Pod) {
	m.edit(func() {
		if _, over := m.ended[p.UID]; !over && podstatus.IsTerminal(p.Status.Phase) {
			p.Status.Phase = v1.PodRunning
		}
	})
}

// reviveOutdatedEnds notes the ends that a bad disk did not let the journal forget or replace by a newer one: they come
// back with the next process. Unless the API's end shows that such an end is older, it is written over it: by its
// content it may as well be the newer one, which must not be lost.
func (m *machine) reviveOutdatedEnds() {
	m.edit(func() {
		clear(m.revived)
		for uid, final := range m.journal.Finals() {
			if number, ok := reportNumber(&final.Status); ok && m.outdated[uid] {
				m.revived[uid] = number
			}
		}
	})
}
