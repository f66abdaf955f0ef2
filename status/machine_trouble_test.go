package status

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/instant"
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
		if err == nil && numbered && slices.Contains(d.m.revived[uid], number) { // finished since, and as old as before
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
	if m.fault != nil { // others may be refused, and the server may have asked for a pause
		within = healedWithin
	}
	m.expectGrave(s, within, choices[1]%2 == 0, "after the report")
}

// expectGrave checks that the API has the readiness and the phase of a pod within a time, if nothing is wrong that
// excuses the contrary. Patient: it waits until what was wrong before is no excuse any more.
func (m *machine) expectGrave(s *subject, within time.Duration, patient bool, when string) {
	began := time.Now()
	at := began.Add(within)
	m.edit(func() {
		if hung := m.hungUntil[s.pod.Namespace+"/"+s.pod.Name]; hung.After(began) {
			at = hung.Add(within + time.Second) // a pod is not tried again within a second
		}
	})
	if by := m.graveBy(s); by.After(at) && !patient {
		return
	} else {
		at = instant.Later(at, by)
	}
	time.Sleep(time.Until(at))
	synctest.Wait() // for a try of this moment
	if !m.obstructed(s) && !m.unlisted() {
		m.checkGrave(s, fmt.Sprint(time.Since(began), " ", when))
	}
}

// obstructed reports whether something is wrong now that may keep the readiness or the phase of a pod from the API.
func (m *machine) obstructed(s *subject) bool {
	return m.grips || m.fault != nil && !(m.single && !singledOut(s.pod.Name))
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
	m.edit(func() { before, m.disk, m.badDisk = m.disk, next, m.badDisk || next != diskState{} })
	if before.hangs != nil {
		close(before.hangs)
	}
}

// inJournal reports whether the journal has the newest status of a pod.
func (m *machine) inJournal(s *subject) bool {
	final, kept := m.journal.Finals()[s.pod.UID]
	cached := m.manager.cache.load(s.pod.UID)
	return kept && cached != nil && final.Version == cached.version
}

// lostEnd reports whether an error says that an end was stored and the journal does not have it.
func lostEnd(err error) bool { return errors.Is(err, errDiskHangs) || errors.Is(err, errDiskFull) }

// terminate is TerminatePod, which may warn of the disk.
func (m *machine) terminate(s *subject) {
	if err := m.manager.TerminatePod(m.known(s)); err != nil && !lostEnd(err) && !(m.kind.Own && errors.Is(err, ErrUnknownPod)) {
		panic(err)
	}
	m.noteVersion(s)
}

// forSome answers the requests for some pods only with an error.
func forSome(fault func(statustest.Request) error) func(statustest.Request, int) error {
	return func(s statustest.Request, _ int) error {
		if name := s.PodName(); name != "" && singledOut(name) {
			return fault(s)
		}
		return nil
	}
}

// singledOut reports whether a pod is one of those that a fault for some pods meets.
func singledOut(name string) bool { return name[len(name)-1]%2 == 1 }

// singled are faults that only some pods meet.
var singled = []func(s statustest.Request, seq int) error{
	forSome(func(statustest.Request) error { return apierrors.NewUnauthorized("token expired") }),
	forSome(func(s statustest.Request) error {
		return apierrors.NewForbidden(podResource, s.PodName(), errors.New("policy"))
	}),
	forSome(func(statustest.Request) error { return statustest.Throttled(30) }),
	forSome(func(statustest.Request) error { return tooLargeForProxy }),
	forSome(func(statustest.Request) error { return tooLargeForServer }),
}

// flap is a node whose lease is late again and again: the node lifecycle controller takes the readiness of
// its pods away. If nothing else is wrong, it is back 10 s after each time.
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
		flapped, within := time.Now(), fightGrave
		if m.fault != nil { // others may be refused, and the server may have asked for a pause
			within = healedWithin
		}
		for _, s := range m.subjects {
			if !m.lag {
				m.expectGrave(s, time.Until(flapped.Add(within)), false, "after the node was late")
			}
		}
		time.Sleep(time.Until(flapped.Add(time.Duration(20+choices[1]%100) * time.Second)))
	}
}

// manyJobs are more than may hang at once without a slot.
const manyJobs = slowTurns + 16

// endMany has many pods end on a disk that hangs, and another one lose readiness: that needs no disk, and is sent at once.
func (m *machine) endMany(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return alive(s) && s.reported > 0 && !s.static && m.owns(s) })
	if s == nil || choices[1]%4 > 0 || m.obstructed(s) || m.fault != nil {
		return
	}
	m.replaceDisk(diskState{})
	var jobs []*subject
	for range manyJobs {
		m.names++
		job := &subject{pod: newPod(fmt.Sprint("job-", m.names), restartNever)}
		m.edit(func() { m.truth[job.pod.UID] = job })
		job.pod = m.api.Put(job.pod)
		m.table.Set(job.pod)
		_, err := m.manager.SetPodStatus(job.pod, running(job.pod, true))
		must(err)
		jobs = append(jobs, job)
	}
	time.Sleep(healedWithin)
	m.replaceDisk(diskState{hangs: make(chan struct{})})
	var ends sync.WaitGroup
	for _, job := range jobs {
		ends.Go(func() { m.manager.SetPodStatus(job.pod, ended(job.pod, 0)) })
	}
	time.Sleep(5 * time.Second)
	m.withdraw([3]int{slices.Index(m.subjects, s)})
	m.replaceDisk(diskState{})
	ends.Wait()
	for _, job := range jobs {
		m.api.Remove(job.pod.Namespace, job.pod.Name)
		m.table.Remove(job.pod)
		m.manager.Forget(job.pod.UID)
	}
	synctest.Wait()
	m.edit(func() {
		for _, job := range jobs {
			delete(m.truth, job.pod.UID)
		}
	})
}

// chat is a writer that is busy with the annotations of a pod while it loses readiness or ends, and the server is slow. If nothing
// else is wrong, the API knows of it within a quarter of a minute, or after the turn that is under way.
func (m *machine) chat(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return alive(s) && s.reported > 0 && !s.static && m.owns(s) })
	if s == nil {
		return
	}
	latency := []time.Duration{50 * time.Millisecond, time.Second, 2 * time.Second}[choices[1]%3]
	m.edit(func() { s.contested = true })
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
	m.expectGrave(s, within, true, "while another writer is busy")
	close(stop)
	done.Wait()
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
	if m.partlyRefused(s) && time.Since(m.healed) < restoredWithin {
		return // invariant 13 gives it a minute, after which the whole status is looked at
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

// partlyRefused reports whether the server refuses fields of the status of a pod.
func (m *machine) partlyRefused(s *subject) bool {
	return slices.ContainsFunc(m.manager.Pending(), func(p Pending) bool { return p.UID == s.pod.UID && len(p.Refused) > 0 })
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

// reviveOutdatedEnds notes the ends that a bad disk did not let the journal remove or replace by a newer one: they come
// back with the next process. Unless the API's end shows that such an end is older, it is written over it: by its
// content it may as well be the newer one, which must not be lost.
func (m *machine) reviveOutdatedEnds() {
	for _, s := range m.subjects {
		if !m.inJournal(s) { // a write that was not begun, behind one that hangs
			m.edit(func() { m.outdated[s.pod.UID] = true })
		}
	}
	m.edit(func() {
		clear(m.revived)
		for uid, final := range m.journal.Finals() {
			if number, ok := reportNumber(&final.Status); ok && m.outdated[uid] {
				m.revived[uid] = []int{number}
			}
		}
	})
}
