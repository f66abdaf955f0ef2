package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// record is what the test has seen of the API, by the UID there.
type record struct {
	seen  map[types.UID]int // number of the newest report
	ended map[types.UID]v1.PodPhase
	exits map[types.UID]int32 // of the containers of ended pods
	gates map[types.UID]string
	// versions is what the cache has said of each pod since the start of the process, by
	// the UID on the node, and written the newest of them that was seen in the API.
	versions map[types.UID][]version
	written  map[types.UID]uint64
}

type version struct {
	number uint64
	status v1.PodStatus
}

func newRecord() record {
	return record{seen: map[types.UID]int{}, ended: map[types.UID]v1.PodPhase{}, exits: map[types.UID]int32{}, gates: map[types.UID]string{},
		versions: map[types.UID][]version{}, written: map[types.UID]uint64{}}
}

func (r record) clone() record {
	return record{seen: maps.Clone(r.seen), ended: maps.Clone(r.ended), exits: maps.Clone(r.exits), gates: maps.Clone(r.gates),
		versions: r.versions, written: map[types.UID]uint64{}}
}

func (r *record) forgetVersions() {
	clear(r.versions)
	clear(r.written)
}

// noteVersion keeps what the cache says of a pod after a report.
func (m *machine) noteVersion(s *subject) {
	newest := m.manager.cache.load(s.pod.UID)
	if newest == nil {
		return
	}
	m.edit(func() {
		known := m.versions[s.pod.UID]
		if len(known) > 0 && known[len(known)-1].number > newest.version {
			m.violated("monotonic: the version of %s went from %d to %d", s.pod.Name, known[len(known)-1].number, newest.version)
		}
		m.versions[s.pod.UID] = append(known, version{newest.version, newest.status})
	})
}

func (m *machine) violated(format string, args ...any) {
	m.broken = append(m.broken, fmt.Sprintf(format, args...))
}

func (m *machine) violations() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	overlap := m.api.Overlaps()
	if len(overlap) > 0 {
		m.violated("two requests for one pod at once: %v", overlap)
	}
	return strings.Join(m.broken, "; ")
}

// checkRequest checks that a request may be made.
func (m *machine) checkRequest(s statustest.Request) {
	subject := m.truth[s.UID]
	switch {
	case s.Verb == "DELETE" && (subject == nil || subject.static || !subject.finished || !subject.deleting || subject.running):
		m.violated("a delete was sent for %s (%s), which is not a finished pod in deletion", s.Name, s.UID)
	case s.Verb == "DELETE" && subject.unreclaimed:
		m.violated("a delete was sent for %s, whose resources are not reclaimed", s.Name)
	case s.Verb == "PATCH" && (subject == nil || subject.pod.Namespace+"/"+subject.pod.Name != s.Name):
		m.violated("right pod: a patch was sent to %s for %s", s.Name, s.UID)
	}
}

// inspect checks a version of a pod that the API has stored.
func (m *machine) inspect(pod *v1.Pod) {
	s := m.truth[pod.UID]
	number, numbered := reportNumber(&pod.Status)
	revived := numbered && slices.Contains(m.revived[pod.UID], number)
	if numbered {
		if number < m.seen[pod.UID] && !revived {
			m.violated("monotonic: %s went from report %d to %d", pod.Name, m.seen[pod.UID], number)
		}
		m.seen[pod.UID] = number
	}
	if was, ok := m.ended[pod.UID]; ok && pod.Status.Phase != was && !podstatus.IsMirror(pod) {
		m.violated("terminal is final: %s went from %s to %s", pod.Name, was, pod.Status.Phase)
	}
	if podstatus.IsTerminal(pod.Status.Phase) {
		m.ended[pod.UID] = pod.Status.Phase
		if was, running := m.ended[pod.UID], s != nil && s.running && !s.static; running && was == pod.Status.Phase {
			m.violated("terminal is final: %s became %s while its container could run", pod.Name, pod.Status.Phase)
		}
		// What a node writes before it knows of a restore is a difference to what is no more.
		if isReady(&pod.Status) && !m.recentlyRestored() {
			m.violated("terminal is final: %s is %s and Ready", pod.Name, pod.Status.Phase)
		}
	}
	m.inspectExit(pod, revived)
	gate := ""
	if c := podstatus.FindCondition(pod.Status.Conditions, "example.com/gate"); c != nil {
		gate = c.Message
	}
	if gate != m.gates[pod.UID] {
		m.violated("own fields only: the foreign condition of %s is %q, its owner wrote %q", pod.Name, gate, m.gates[pod.UID])
	}
	if s != nil {
		m.inspectVersion(s, pod)
	}
	m.stored[pod.UID] = &pod.Status
}

// inspectExit checks that the end of a container in an ended pod stays, unless the journal has brought an earlier one back: it is
// the end that the runtime has reported, and the later one may have been made up by TerminatePod.
func (m *machine) inspectExit(pod *v1.Pod, revived bool) {
	if !podstatus.IsTerminal(pod.Status.Phase) || podstatus.IsMirror(pod) {
		return
	}
	code, known := exitCode(&pod.Status)
	if was, ok := m.exits[pod.UID]; ok && !revived && (!known || code != was) {
		m.violated("terminal is final: the container of %s had exited with %d, and now: %+v", pod.Name, was, pod.Status.ContainerStatuses)
	}
	if known {
		m.exits[pod.UID] = code
	}
}

func exitCode(status *v1.PodStatus) (code int32, known bool) {
	if len(status.ContainerStatuses) == 0 || status.ContainerStatuses[0].State.Terminated == nil {
		return 0, false
	}
	return status.ContainerStatuses[0].State.Terminated.ExitCode, true
}

// inspectVersion checks that the API is not taken back to what the node said before. Not all
// that it says need be what the node has said at one time: others write too. A write that changes only fields to what the
// node has said since does not take the API back, even if the whole then equals an older status: a write in
// two parts does that, and a difference to a history that the server has lost.
func (m *machine) inspectVersion(s *subject, pod *v1.Pod) {
	before := m.stored[pod.UID]
	if before == nil {
		before = &v1.PodStatus{}
	}
	newest, forward := uint64(0), false
	said := m.versions[s.pod.UID]
	if cached := m.manager.cache.load(s.pod.UID); cached != nil { // the call that stored it may not have returned
		said = append(slices.Clip(said), version{cached.version, cached.status})
	}
	changed := slices.Concat(differences(&pod.Status, before), differences(before, &pod.Status)) // a final phase hides a change of it
	for _, v := range said {
		said := v.status
		if podstatus.IsTerminal(said.Phase) && !podstatus.IsTerminal(pod.Status.Phase) { // withheld
			said.Phase, said.Reason, said.Message = pod.Status.Phase, pod.Status.Reason, pod.Status.Message
		}
		unlike := differences(&pod.Status, &said)
		if len(unlike) == 0 {
			newest = v.number
		}
		if v.number >= m.written[pod.UID] && !slices.ContainsFunc(changed, func(c fieldDifference) bool { return named(unlike, c.field) }) {
			forward = true
		}
	}
	if newest == 0 {
		return
	}
	if newest >= m.written[pod.UID] {
		m.written[pod.UID] = newest
	} else if !forward {
		m.violated("monotonic: %s went from version %d to %d", pod.Name, m.written[pod.UID], newest)
	}
}

func reportNumber(status *v1.PodStatus) (int, bool) {
	text, ok := strings.CutPrefix(status.Message, "report ")
	number, err := strconv.Atoi(text)
	return number, ok && err == nil
}

// detailOf is the number of the newest detail in a status, 0 if there is none.
func detailOf(status *v1.PodStatus) int {
	c := podstatus.FindCondition(status.Conditions, v1.PodReadyToStartContainers)
	if c == nil {
		return 0
	}
	number, _ := strconv.Atoi(strings.TrimPrefix(c.Message, "detail ")) // a condition of podstatus.Complete has no message
	return number
}

// checkStep checks what must be true at any time.
func (m *machine) checkStep() {
	finals := m.journal.Finals()
	for _, s := range m.subjects {
		cached, ok := m.manager.GetPodStatus(s.pod.UID)
		if _, kept := finals[s.pod.UID]; s.kept && !kept && m.owns(s) && (!m.badDisk || !podstatus.IsTerminal(m.api.Pod(s.pod).Status.Phase)) {
			m.violated("durable: the end of %s is not in the journal; that the API has it is not enough if all disks are well (bad disk: %v)", s.pod.Name, m.badDisk)
		}
		if ok && s.kept && m.owns(s) {
			m.checkEnd(s, &cached)
		}
		if ok && s.reported > 0 && !s.ended && len(cached.ContainerStatuses) > 0 && cached.ContainerStatuses[0].Ready != s.ready {
			m.violated("the node says ready=%v of %s, its reporter said %v", !s.ready, s.pod.Name, s.ready)
		}
	}
}

// checkEnd checks that an acknowledged end stays, whatever the server has lost and how often the process has started since.
func (m *machine) checkEnd(s *subject, cached *v1.PodStatus) {
	code, known := exitCode(cached)
	_, older := m.revived[s.pod.UID]
	if cached.Phase != s.end.phase || s.end.known && code != s.end.code && !older || s.end.known && !known && !older {
		m.violated("terminal is final: %s has ended as %+v, and the node says %s, exit code %d (known: %v)", s.pod.Name, s.end, cached.Phase, code, known)
	}
}

// checkFlushed checks that what was reported has arrived. What others have done to it since is
// another matter, so only the number of the report counts.
func (m *machine) checkFlushed() {
	for _, s := range m.subjects {
		withheld := s.ended && s.running // waits for the node itself, and Flush not for it
		if !m.owns(s) || m.manager.cache.load(s.pod.UID) == nil || s.finished || withheld {
			continue
		}
		api := m.api.Pod(s.pod)
		if number, ok := reportNumber(&api.Status); ok && number < s.reported && !podstatus.IsTerminal(api.Status.Phase) && !m.recentlyRestored() {
			m.violated("flush: done, but the API has report %d of %s, the newest is %d", number, s.pod.Name, s.reported)
		}
		if newest := detailOf(&m.manager.cache.load(s.pod.UID).status); newest > detailOf(&api.Status) && !podstatus.IsTerminal(api.Status.Phase) && !m.recentlyRestored() {
			m.violated("flush: done, but the API has detail %d of %s, the newest is %d", detailOf(&api.Status), s.pod.Name, newest)
		}
	}
}

// recentlyRestored reports whether the manager need not have noticed a restore yet.
func (m *machine) recentlyRestored() bool {
	by := m.restored.Add(restoredWithin)
	return !m.restored.IsZero() && (!time.Now().After(by) || m.fault != nil && m.faultSince.Before(by) || m.lag && m.lagSince.Before(by))
}

// graveBy is when the API has the readiness and the phase of a pod again at the latest.
func (m *machine) graveBy(s *subject) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := s.pod.Namespace + "/" + s.pod.Name
	by := m.healed.Add(healedWithin)
	if asked := m.askedUntil[name]; asked.After(m.healed) { // the server has asked for that much with regard to this pod
		by = asked.Add(healedWithin)
	}
	if !m.restored.IsZero() {
		by = instant.Later(by, m.restored.Add(restoredWithin))
	}
	return by
}

// deliveredBy is when the API has the whole status of a pod at the latest.
func (m *machine) deliveredBy(s *subject) time.Time {
	by := m.healed.Add(restoredWithin)
	for _, f := range m.manager.Fights() {
		if f.UID == s.pod.UID {
			by = instant.Later(by, f.Last.Add(fightBackoff.Wait(f.Rounds-fightRounds+1, 0)+healedWithin))
		}
	}
	return by
}

// checkDelivered checks that the API's pod says what the node says.
func (m *machine) checkDelivered(s *subject, when string) {
	if !m.owns(s) {
		return
	}
	api := m.api.Pod(s.pod)
	if s.finished && api.DeletionTimestamp != nil {
		m.violated("nothing lost: %s has finished, is in deletion, and is still there %s: %+v", s.pod.Name, when, m.manager.Pending())
		return
	}
	cached := m.manager.cache.load(s.pod.UID)
	if cached == nil {
		if m.kind.Own && s.reported > 0 && !s.lost {
			m.violated("nothing lost: %s, the node has no status of %s, which was reported and is in the API", when, s.pod.Name)
		}
		return
	}
	if d := difference(&api.Status, &cached.status); d != "" {
		m.violated("nothing lost: %s, %s of %s (pending %+v)", when, d, s.pod.Name, m.manager.Pending())
	}
	if number, _ := reportNumber(&api.Status); number != s.reported && !podstatus.IsTerminal(api.Status.Phase) && !s.finished {
		m.violated("nothing lost: the API has report %d of %s, the newest is %d", number, s.pod.Name, s.reported)
	}
}

// checkRemains checks that nothing is left to do, nor of what is done.
func (m *machine) checkRemains() {
	for _, f := range m.manager.Fights() {
		if s := m.truth[f.UID]; s != nil && !s.contested {
			m.violated("a fight over %s, which no other has written to", f.Name)
		}
	}
	for _, p := range m.manager.Pending() {
		if pod := m.api.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}); pod != nil && pod.UID == p.UID && !partlyRefused(m.manager.cache.load(p.UID)) {
			m.violated("still pending an hour after all faults ended: %+v", p)
		}
	}
	finals := m.journal.Finals()
	for _, s := range m.subjects {
		final, kept := finals[s.pod.UID]
		cached := m.manager.cache.load(s.pod.UID)
		switch {
		case !m.owns(s) || s.static:
			if kept && (m.kind.Own || s.static) {
				m.violated("the journal has the end of %s, which is gone or static", s.pod.Name)
			}
		case cached.isEnd() && (!kept || final.Version != cached.version):
			m.violated("the journal has not the newest end of %s, version %d, but version %d (%v)", s.pod.Name, cached.version, final.Version, kept)
		}
	}
}

// partlyRefused reports whether the status has a field that the server does not take.
func partlyRefused(s *snapshot) bool {
	return s != nil && (refusedHostIPs(&s.status) || refusedClass(&s.status))
}

func refusedHostIPs(s *v1.PodStatus) bool {
	return len(s.HostIPs) > 0 && s.HostIPs[0].IP != s.HostIP
}

func refusedClass(s *v1.PodStatus) bool {
	return s.QOSClass != "" && s.QOSClass != v1.PodQOSBestEffort
}

// fieldDifference is a field of which the API says something else than the node.
type fieldDifference struct{ field, text string }

func named(list []fieldDifference, field string) bool {
	return slices.ContainsFunc(list, func(d fieldDifference) bool { return d.field == field })
}

// difference names what the API says otherwise than the node, as far as the node has a say.
func difference(api, cached *v1.PodStatus) string {
	if all := differences(api, cached); len(all) > 0 {
		return all[0].text
	}
	return ""
}

// differences is written without the rules that it checks.
func differences(api, cached *v1.PodStatus) (all []fieldDifference) {
	want := asSent(cached)
	final := podstatus.IsTerminal(api.Phase) && api.Phase != want.Phase
	for _, f := range []struct {
		name      string
		api, node any
		free      bool
	}{
		{"phase", api.Phase, want.Phase, final},
		{"reason", api.Reason, want.Reason, final},
		{"message", api.Message, want.Message, final},
		{"podIP", api.PodIP, want.PodIP, false},
		{"podIPs", api.PodIPs, want.PodIPs, false},
		{"hostIP", api.HostIP, want.HostIP, false},
		{"hostIPs", api.HostIPs, want.HostIPs, refusedHostIPs(want)},
		{"qosClass", api.QOSClass, want.QOSClass, want.QOSClass == "" || refusedClass(want)},
		{"nominatedNodeName", api.NominatedNodeName, want.NominatedNodeName, false},
		{"observedGeneration", api.ObservedGeneration, want.ObservedGeneration, want.ObservedGeneration == 0},
		{"startTime", api.StartTime, want.StartTime, false},
		{"initContainerStatuses", api.InitContainerStatuses, want.InitContainerStatuses, false},
		{"containerStatuses", api.ContainerStatuses, want.ContainerStatuses, false},
		{"ephemeralContainerStatuses", api.EphemeralContainerStatuses, want.EphemeralContainerStatuses, false},
	} {
		if !f.free && !equality.Semantic.DeepEqual(f.api, f.node) {
			all = append(all, fieldDifference{f.name, fmt.Sprintf("the API has %s %v, the node %v", f.name, f.api, f.node)})
		}
	}
	return append(all, differentConditions(api, want)...)
}

func differentConditions(api, want *v1.PodStatus) (all []fieldDifference) {
	types := map[v1.PodConditionType]bool{}
	for _, list := range [][]v1.PodCondition{api.Conditions, want.Conditions} {
		for _, c := range list {
			types[c.Type] = podstatus.IsOwned(c.Type)
		}
	}
	for _, t := range slices.Sorted(maps.Keys(types)) {
		a, w := podstatus.FindCondition(api.Conditions, t), podstatus.FindCondition(want.Conditions, t)
		readiness := t == v1.PodReady || t == v1.ContainersReady
		switch {
		case !types[t], readiness && podstatus.IsTerminal(api.Phase): // checked when it was stored
		case a == nil || w == nil:
			all = append(all, fieldDifference{"condition " + string(t), fmt.Sprintf("the API has condition %+v, the node %+v", a, w)})
		case a.Status != w.Status || a.Reason != w.Reason || a.Message != w.Message:
			all = append(all, fieldDifference{"condition " + string(t), fmt.Sprintf("the API has condition %+v, the node %+v", *a, *w)})
		}
	}
	return all
}

// asSent is a status after its way to the server and back.
func asSent(status *v1.PodStatus) *v1.PodStatus {
	text, err := json.Marshal(status)
	must(err)
	sent := &v1.PodStatus{}
	must(json.Unmarshal(text, sent))
	statustest.SetDefaults(sent)
	return sent
}
