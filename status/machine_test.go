package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/podstatus"
)

// TestInvariantsHoldWhateverHappens runs random programs of reporters, API users, second
// writers, faults, a lagging watch and restarts, and checks the invariants of
// ARCHITECTURE.md at every write and after every step. Each report carries a number in the
// status message, so that what the API has seen can be put in order.
func TestInvariantsHoldWhateverHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		program := rapid.SliceOfN(rapid.Custom(drawStep), 1, 60).Draw(r, "program")
		var broken string
		synctest.Test(t, func(*testing.T) { broken = runProgram(program) })
		if broken != "" {
			r.Fatal(broken)
		}
	})
}

// step is an action with the numbers that it chooses by.
type step struct {
	Action  string
	Choices [3]int
}

func drawStep(t *rapid.T) step {
	s := step{Action: rapid.SampledFrom(slices.Sorted(maps.Keys(actions))).Draw(t, "action")}
	for i := range s.Choices {
		s.Choices[i] = rapid.IntRange(0, 59_999).Draw(t, "choice")
	}
	return s
}

// actions are what can happen; one that finds nothing to happen to does nothing.
var actions = map[string]func(*machine, [3]int){
	"create":                (*machine).create,
	"report":                (*machine).reportRunning,
	"report more":           (*machine).reportRunning,
	"end":                   (*machine).endPod,
	"stop containers":       (*machine).stopContainers,
	"flip readiness":        (*machine).flip,
	"finish":                (*machine).finish,
	"delete by a user":      (*machine).deleteByUser,
	"force delete":          (*machine).forceDelete,
	"second writer":         (*machine).secondWriter,
	"fault":                 (*machine).startFault,
	"watch lags":            func(m *machine, _ [3]int) { m.edit(func() { m.lag = true }) },
	"watch catches up":      func(m *machine, _ [3]int) { m.catchUp() },
	"wait":                  func(_ *machine, c [3]int) { time.Sleep(time.Duration(c[0]) * time.Millisecond) },
	"remove orphans":        (*machine).removeOrphans,
	"crash and start again": (*machine).restart,
}

// runProgram returns what was violated, or nothing.
func runProgram(program []step) string {
	m := newMachine()
	defer func() { m.stop() }()
	for i, s := range program {
		actions[s.Action](m, s.Choices)
		synctest.Wait()
		if broken := m.violations(); broken != "" {
			return fmt.Sprintf("after step %d, %s: %s", i, s.Action, broken)
		}
	}
	m.heal()
	return m.undelivered()
}

// subject is a pod as the test knows it: what is true of it.
type subject struct {
	pod      *v1.Pod
	reported int  // number of the newest report that was stored
	running  bool // a container could run
	ended    bool // a terminal status was reported
	finished bool
	deleting bool
}

type machine struct {
	api      *fakeAPI
	journal  *journal.Memory
	table    *pods.Table
	manager  *Manager
	stop     func()
	subjects []*subject
	names    int
	reports  int

	// mu guards what the API's own goroutines look at.
	mu     sync.Mutex
	broken []string
	seen   map[types.UID]int // newest report number seen in the API
	ended  map[types.UID]v1.PodPhase
	truth  map[types.UID]*subject
	gates  map[types.UID]string
	held   []*v1.Pod // watch events not delivered yet
	lag    bool
	fault  string
}

func newMachine() *machine {
	m := &machine{
		api: newFakeAPI(), journal: journal.NewMemory(),
		seen: map[types.UID]int{}, ended: map[types.UID]v1.PodPhase{},
		truth: map[types.UID]*subject{}, gates: map[types.UID]string{},
	}
	m.api.script = m.misbehave
	m.api.watch = m.watched
	m.start()
	return m
}

// CouldHaveRunningContainers makes the machine the manager's Safety.
func (m *machine) CouldHaveRunningContainers(pod *v1.Pod) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.truth[pod.UID]
	return s != nil && s.running
}

func (m *machine) start() {
	m.table = pods.New()
	for _, pod := range m.api.all() {
		m.table.Set(pod)
	}
	manager, err := New(Options{Client: m.api, Pods: m.table, Journal: m.journal, Safety: m, Workers: 3, QPS: 50, Burst: 5, RequestTimeout: 5 * time.Second})
	must(err)
	m.manager = manager
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx) }()
	m.stop = func() { cancel(); must(<-done) }
}

// misbehave is the script of the API: what the current fault makes of a request.
func (m *machine) misbehave(_ context.Context, s sent) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.verb == "DELETE" {
		if subject := m.truth[s.uid]; subject == nil || !subject.finished || !subject.deleting || subject.running {
			m.violated("a delete was sent for %s (%s), which is not a finished pod in deletion", s.name, s.uid)
		}
	}
	half := len(s.body)%2 == 0
	switch m.fault {
	case "errors":
		return apierrors.NewInternalError(errors.New("boom"))
	case "some errors":
		if half {
			return apierrors.NewServiceUnavailable("not now")
		}
	case "hangs":
		return errHang
	case "throttled":
		if half {
			return apierrors.NewTooManyRequests("busy", 2)
		}
	}
	return nil
}

// watched sees everything that the API stores, in order, and checks it.
func (m *machine) watched(pod *v1.Pod) {
	m.mu.Lock()
	m.inspect(pod)
	lagging := m.lag
	if lagging {
		m.held = append(m.held, pod)
	}
	m.mu.Unlock()
	if !lagging {
		m.deliver(pod)
	}
}

func (m *machine) deliver(pod *v1.Pod) {
	m.table.Set(pod)
	m.manager.ObservePod(pod)
}

// inspect checks a version of a pod that the API has stored.
func (m *machine) inspect(pod *v1.Pod) {
	if number, ok := reportNumber(&pod.Status); ok {
		if number < m.seen[pod.UID] {
			m.violated("monotonic: %s went from report %d to %d", pod.Name, m.seen[pod.UID], number)
		}
		m.seen[pod.UID] = number
	}
	if was, ok := m.ended[pod.UID]; ok && pod.Status.Phase != was {
		m.violated("terminal is final: %s went from %s to %s", pod.Name, was, pod.Status.Phase)
	}
	if podstatus.IsTerminal(pod.Status.Phase) {
		m.ended[pod.UID] = pod.Status.Phase
		if s := m.truth[pod.UID]; s != nil && s.running {
			m.violated("terminal is final: %s became %s while its container could run", pod.Name, pod.Status.Phase)
		}
		if isReady(&pod.Status) {
			m.violated("terminal is final: %s is %s and Ready", pod.Name, pod.Status.Phase)
		}
	}
	gate := ""
	if c := podstatus.FindCondition(pod.Status.Conditions, "example.com/gate"); c != nil {
		gate = c.Message
	}
	if gate != m.gates[pod.UID] {
		m.violated("own fields only: the foreign condition of %s is %q, its owner wrote %q", pod.Name, gate, m.gates[pod.UID])
	}
}

func (m *machine) violated(format string, args ...any) {
	m.broken = append(m.broken, fmt.Sprintf(format, args...))
}

func reportNumber(status *v1.PodStatus) (int, bool) {
	text, ok := strings.CutPrefix(status.Message, "report ")
	number, err := strconv.Atoi(text)
	return number, ok && err == nil
}

func (m *machine) violations() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.api.overlap) > 0 {
		m.violated("two requests for one pod at once: %v", m.api.overlap)
	}
	return strings.Join(m.broken, "; ")
}

// pick chooses a pod that a step applies to, nil if there is none.
func (m *machine) pick(choice int, fits func(*subject) bool) *subject {
	var candidates []*subject
	for _, s := range m.subjects {
		if fits(s) {
			candidates = append(candidates, s)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return candidates[choice%len(candidates)]
}

// edit changes what is true of a pod where the API's goroutines may look.
func (m *machine) edit(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *machine) create(choices [3]int) {
	if len(m.subjects) > 6 {
		return
	}
	m.names++
	name := fmt.Sprint("pod-", m.names)
	if gone := m.freeName(); gone != "" && choices[0]%2 == 0 {
		name = gone
	}
	s := &subject{pod: newPod(name, restartNever, func(p *v1.Pod) { p.UID = types.UID(fmt.Sprintf("%s-uid-%d", name, m.names)) }), running: true}
	m.edit(func() { m.truth[s.pod.UID] = s })
	s.pod = m.api.put(s.pod)
	m.table.Set(s.pod)
	m.subjects = append(m.subjects, s)
}

// freeName is the name of a pod that has left the API.
func (m *machine) freeName() string {
	for _, s := range m.subjects {
		if m.api.pod(s.pod) == nil {
			return s.pod.Name
		}
	}
	return ""
}

func alive(s *subject) bool { return !s.ended && !s.finished }

func (m *machine) reportRunning(choices [3]int) {
	if s := m.pick(choices[0], alive); s != nil {
		m.report(s, running(s.pod, choices[1]%2 == 0))
	}
}

func (m *machine) endPod(choices [3]int) {
	s := m.pick(choices[0], alive)
	if s == nil {
		return
	}
	s.ended = true
	if choices[1]%2 == 0 {
		m.report(s, evicted(s.pod))
		return
	}
	m.edit(func() { s.running = false })
	m.report(s, ended(s.pod, int32(choices[2]%4)))
}

// evicted is the status of a pod that has failed while its container still runs.
func evicted(pod *v1.Pod) v1.PodStatus {
	status := running(pod, true)
	status.Phase, status.Reason = v1.PodFailed, "Evicted"
	return status
}

func (m *machine) stopContainers(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return s.ended && s.running })
	if s == nil {
		return
	}
	m.edit(func() { s.running = false })
	m.report(s, ended(s.pod, 137))
}

func (m *machine) report(s *subject, status v1.PodStatus) {
	m.reports++
	status.Message = fmt.Sprint("report ", m.reports)
	pod := s.pod.DeepCopy()
	if s.deleting {
		deleting(pod)
	}
	if _, err := m.manager.SetPodStatus(pod, status); err == nil {
		s.reported = m.reports
	}
}

func (m *machine) flip(choices [3]int) {
	if s := m.pick(choices[0], alive); s != nil {
		_ = m.manager.SetContainerReadiness(s.pod.UID, "process://"+string(s.pod.UID), choices[1]%2 == 0)
	}
}

func (m *machine) finish(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return s.ended && !s.running && !s.finished })
	if s == nil {
		return
	}
	m.edit(func() { s.finished = true })
	must(m.manager.TerminatePod(s.pod))
}

func (m *machine) deleteByUser(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return !s.deleting && m.owns(s) })
	if s == nil {
		return
	}
	m.edit(func() { s.deleting = true })
	pod := m.api.pod(s.pod)
	deleting(pod)
	m.api.put(pod)
}

func (m *machine) forceDelete(choices [3]int) {
	if s := m.pick(choices[0], m.owns); s != nil {
		m.api.remove(s.pod.Namespace, s.pod.Name)
	}
}

// owns tells whether the API's pod of that name is this one.
func (m *machine) owns(s *subject) bool {
	pod := m.api.pod(s.pod)
	return pod != nil && pod.UID == s.pod.UID
}

func (m *machine) secondWriter(choices [3]int) {
	s := m.pick(choices[0], m.owns)
	if s == nil {
		return
	}
	pod := m.api.pod(s.pod)
	if choices[1]%2 == 0 {
		gate := fmt.Sprint("gate ", choices[2]%10)
		m.edit(func() { m.gates[pod.UID] = gate })
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == "example.com/gate" })
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: "example.com/gate", Status: v1.ConditionTrue, Message: gate})
	} else if c := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady); c != nil {
		c.Status, c.LastTransitionTime = v1.ConditionFalse, metav1.Now() // as the node controller does
	}
	m.api.put(pod)
}

func (m *machine) startFault(choices [3]int) {
	faults := []string{"", "errors", "some errors", "hangs", "throttled"}
	m.edit(func() { m.fault = faults[choices[0]%len(faults)] })
}

func (m *machine) catchUp() {
	var held []*v1.Pod
	m.edit(func() { held, m.held, m.lag = m.held, nil, false })
	for _, pod := range held {
		m.deliver(pod)
	}
}

func (m *machine) removeOrphans([3]int) {
	keep := map[types.UID]bool{}
	for _, s := range m.subjects {
		if m.owns(s) {
			keep[s.pod.UID] = true
		}
	}
	m.manager.RemoveOrphanedStatuses(keep)
}

// restart is a crash: what only the memory held is lost, the journal stays. As after every
// start, the workers report again what they see.
func (m *machine) restart([3]int) {
	m.stop()
	m.edit(func() { m.held, m.lag = nil, false })
	m.start()
	for _, s := range m.subjects {
		if !m.owns(s) {
			continue
		}
		s.pod = m.api.pod(s.pod)
		switch {
		case s.finished:
			must(m.manager.TerminatePod(s.pod))
		case s.ended && !s.running:
			m.report(s, m.lastEnd(s))
		case s.ended:
			m.report(s, evicted(s.pod))
		case s.reported > 0:
			m.report(s, running(s.pod, true))
		}
	}
}

// lastEnd is how the runtime says the pod ended: as it did before the crash.
func (m *machine) lastEnd(s *subject) v1.PodStatus {
	if status, ok := m.manager.GetPodStatus(s.pod.UID); ok {
		return status
	}
	if podstatus.IsTerminal(s.pod.Status.Phase) {
		return s.pod.Status
	}
	return ended(s.pod, 1)
}

// heal ends all faults, lets the containers of ended pods stop, and gives everything the
// time it needs, without a new event.
func (m *machine) heal() {
	m.edit(func() {
		m.fault = ""
		for _, s := range m.subjects {
			s.running = s.running && !s.ended
		}
	})
	m.catchUp()
	time.Sleep(time.Hour)
	synctest.Wait()
}

// undelivered tells what was lost.
func (m *machine) undelivered() string {
	for _, s := range m.subjects {
		if !m.owns(s) {
			continue // deleted by a user, or by us: checked when the delete was sent
		}
		if s.finished && s.deleting {
			m.violated("nothing lost: %s has finished, is in deletion, and is still there", s.pod.Name)
			continue
		}
		number, _ := reportNumber(&m.api.pod(s.pod).Status)
		if m.manager.cache.holds(s.pod.UID) && number != s.reported {
			m.violated("nothing lost: the API has report %d of %s, the newest is %d", number, s.pod.Name, s.reported)
		}
	}
	for _, p := range m.manager.Pending() {
		if pod, err := m.api.find(p.Namespace, p.Name); err == nil && pod.UID == p.UID {
			m.violated("nothing lost: still pending an hour after all faults ended: %+v", p)
		}
	}
	return m.violations()
}
