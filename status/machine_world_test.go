package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// subject is a pod as the test knows it: what is true of it.
type subject struct {
	pod      *v1.Pod // as this node runs it
	static   bool
	mirror   types.UID // of a static pod, the last one that the API had
	reported int       // number of the newest report that was stored
	flips    int       // flips of readiness since then
	ready    bool      // what was said last of its container
	running  bool      // a container could run
	ended    bool      // a terminal status was reported
	kept     bool      // the end was acknowledged and is not to be lost
	end      end       // that was acknowledged
	finished bool
	deleting bool // a user has asked for it
	lost     bool // gone from the API, and the node has forgotten it
	// unreclaimed: something of the finished pod is still on the node.
	unreclaimed bool
	// contested: a webhook, a second writer or a restored backup had a hand in what the API says.
	contested bool
}

// end is how a pod has ended: its phase and, once known, the exit code of its container.
type end struct {
	phase v1.PodPhase
	code  int32
	known bool
}

// target is the UID of the pod in the API.
func (s *subject) target() types.UID {
	if s.static {
		return s.mirror
	}
	return s.pod.UID
}

func (s *subject) containerID() string { return "process://" + string(s.pod.UID) }

// watchEvent is what the watch tells of a pod.
type watchEvent struct {
	pod  *v1.Pod
	gone bool
}

type machine struct {
	kind     kind
	api      *statustest.Server
	journal  *journal.Memory
	process  *machineDisk // the journal of this process
	table    *pods.Table
	manager  *Manager
	stop     func()
	subjects []*subject
	names    int
	reports  int
	details  int
	saved    *saved
	// restored is when a backup was last restored, and the server was well again.
	restored time.Time
	// troubled: the fault is, or was since it began, something else than an outage. Single: it meets some pods only.
	troubled, single bool
	// faultSince is when the fault began, lagSince when the watch began to lag, healed when something last ended that was wrong with the server, besides outages.
	faultSince, lagSince, healed time.Time

	diceMu sync.Mutex // guards dice; roll is called with the cache locked, and must not wait for mu
	dice   uint64

	// mu guards what the API's own goroutines look at. They lock the cache while they hold it.
	mu     sync.Mutex
	broken []string
	record
	truth map[types.UID]*subject // by the UID in the API
	held  []watchEvent           // watch events not delivered yet
	lag   bool
	fault func(statustest.Request, int) error
	seq   int // of requests
	// askedUntil is until when the server has asked not to be asked for a pod, and hungUntil how long a request for it
	// may be without an answer, by name. There is no second request for a pod before that.
	askedUntil, hungUntil map[string]time.Time
	// stored is what the API has, by the UID there.
	stored map[types.UID]*v1.PodStatus
	disk   diskState
	// badDisk: the disk was slow, full or hung at some time.
	badDisk bool
	// outdated holds the pods whose end in the journal is not followed by a later write, which the disk has not done,
	// and revived the numbers of such ends that this process has begun with.
	outdated map[types.UID]bool
	revived  map[types.UID][]int
	// hooked: a webhook changes what is written, and grips: readiness or the phase.
	hooked, grips bool
}

// saved is a backup of the server, with the record of that moment.
type saved struct {
	statustest.Backup
	record
}

func newMachine(kind kind) *machine {
	m := &machine{kind: kind, api: statustest.New(), journal: journal.NewMemory(), record: newRecord(), truth: map[types.UID]*subject{},
		outdated: map[types.UID]bool{}, revived: map[types.UID][]int{}, askedUntil: map[string]time.Time{}, hungUntil: map[string]time.Time{}, stored: map[types.UID]*v1.PodStatus{}}
	m.api.SetNode("node")
	m.api.SetFault(m.misbehave)
	m.api.OnStore(func(pod *v1.Pod) { m.watched(watchEvent{pod: pod}) })
	m.api.OnRemove(func(pod *v1.Pod) { m.watched(watchEvent{pod: pod, gone: true}) })
	m.start()
	return m
}

// CouldHaveRunningContainers makes the machine the manager's Safety.
func (m *machine) CouldHaveRunningContainers(pod *v1.Pod) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.truth {
		if s.pod.UID == pod.UID {
			return s.running
		}
	}
	return false
}

// ResourcesReclaimed makes the machine the manager's Reclaim.
func (m *machine) ResourcesReclaimed(pod *v1.Pod, _ *v1.PodStatus) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.truth[pod.UID]
	return s == nil || !s.unreclaimed
}

func (m *machine) start() {
	m.table = pods.New()
	for _, pod := range m.api.Pods() {
		if pod.Spec.NodeName == "node" {
			m.table.Set(pod)
		}
	}
	m.process = &machineDisk{Memory: m.journal, m: m}
	options := Options{Client: m.api.Client(), Pods: m.table, Journal: m.process, Safety: m, Reclaim: m,
		Workers: 3, QPS: 50, Burst: 5, RequestTimeout: machineTimeout, Logger: slog.New(slog.DiscardHandler)}
	options.CompleteReports, options.PreferThroughput, options.AlwaysRead = m.kind.Completes, m.kind.Wide, m.kind.Reads
	if !m.kind.Safety {
		options.Safety = nil
	}
	if m.kind.Own {
		options.Pods = nil
	}
	if m.kind.Ends {
		options.Journal = struct{ Ends }{m.process}
	}
	manager, err := New(options)
	must(err)
	manager.cache.jitter = m.roll
	if m.roll() < 0.5 { // as in a burst: the details of each report wait
		manager.cache.details = &budget{qps: 1e-9}
	}
	m.manager = manager
	if m.kind.Own {
		for _, pod := range slices.Concat(m.table.All(), m.table.Mirrors()) {
			manager.ObservePod(pod)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx) }()
	m.stop = func() { cancel(); must(<-done) }
}

// roll is a number from 0 to 1 that is the same in each run of a program.
func (m *machine) roll() float64 {
	m.diceMu.Lock()
	defer m.diceMu.Unlock()
	m.dice = m.dice*6364136223846793005 + 1442695040888963407
	return float64(m.dice>>40) / (1 << 24)
}

// misbehave is the script of the API: what the current fault makes of a request.
func (m *machine) misbehave(_ context.Context, s statustest.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checkRequest(s)
	m.seq++
	var err error
	if m.fault != nil {
		err = m.fault(s, m.seq)
	}
	if errors.Is(err, statustest.ErrHang) || err != nil && strings.Contains(err.Error(), "carries it out") {
		m.hungUntil[s.Name] = time.Now().Add(machineTimeout)
	}
	delete(m.askedUntil, s.Name)
	if pause := pauseAsked(err); err != nil && pause > 0 {
		m.askedUntil[s.Name] = time.Now().Add(pause)
	}
	return err
}

// machineTimeout is how long a request may take.
const machineTimeout = 5 * time.Second

// watched sees everything that the API stores, in order, and checks it.
func (m *machine) watched(e watchEvent) {
	m.mu.Lock()
	if !e.gone {
		m.inspect(e.pod)
	}
	lagging := m.lag
	if lagging {
		m.held = append(m.held, e)
	}
	m.mu.Unlock()
	if !lagging {
		m.deliver(e)
	}
}

func (m *machine) deliver(e watchEvent) {
	switch {
	case e.pod.Spec.NodeName != "node":
	case e.gone:
		m.table.Remove(e.pod)
		if m.kind.Own {
			m.manager.ObserveDelete(e.pod)
		}
	default:
		m.table.Set(e.pod)
		m.manager.ObservePod(e.pod)
	}
}

// lagBehind has the watch deliver nothing, until it catches up.
func (m *machine) lagBehind([3]int) {
	m.edit(func() {
		if !m.lag {
			m.lag, m.lagSince = true, time.Now()
		}
	})
}

// catchUp ends that. A restore that the watch has not shown within its minute may be noticed only now.
func (m *machine) catchUp() {
	var held []watchEvent
	m.edit(func() {
		if m.lag && !m.restored.IsZero() && m.lagSince.Before(m.restored.Add(restoredWithin)) {
			m.restored = time.Now()
		}
		held, m.held, m.lag = m.held, nil, false
	})
	for _, e := range held {
		m.deliver(e)
	}
	m.relist()
	m.findAgain()
}

// findAgain has the workers report pods that the manager has forgotten and the watch shows again: reports before that
// were refused, since the pod was known to be gone.
func (m *machine) findAgain() {
	for _, s := range m.subjects {
		if m.kind.Own && !s.lost && m.owns(s) && m.manager.cache.load(s.pod.UID) == nil {
			m.reportAgain(s)
		}
	}
}

// manifest is a static pod that the node has read.
func (m *machine) manifest(pod *v1.Pod) {
	m.table.Set(pod)
	if m.kind.Own {
		m.manager.ObservePod(pod)
	}
}

// relist is a watch that begins again: it delivers all pods, as an informer does.
func (m *machine) relist() {
	there := map[types.UID]bool{}
	for _, pod := range m.api.Pods() {
		there[pod.UID] = true
		m.deliver(watchEvent{pod: pod})
	}
	for _, pod := range slices.Concat(m.table.All(), m.table.Mirrors()) {
		if pod.ResourceVersion != "" && !there[pod.UID] {
			m.deliver(watchEvent{pod: pod, gone: true})
		}
	}
}

// pick chooses a pod that a step applies to, nil if there is none.
func (m *machine) pick(choice int, fits func(*subject) bool) *subject {
	var candidates []*subject
	for _, s := range m.subjects {
		if !s.lost && fits(s) {
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

// owns reports whether the API's pod of that name is this one, or its mirror.
func (m *machine) owns(s *subject) bool {
	pod := m.api.Pod(s.pod)
	return pod != nil && pod.UID == s.target()
}

func alive(s *subject) bool { return !s.ended && !s.finished }

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
	if choices[1]%4 == 1 { // every user may say so, and it is not true
		s.pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	}
	m.edit(func() { m.truth[s.pod.UID] = s })
	pod := m.api.Put(s.pod)
	m.edit(func() { s.pod = pod })
	if !m.kind.Own { // which only the watch feeds
		m.table.Set(pod)
	}
	m.subjects = append(m.subjects, s)
}

// createStatic is a new manifest on the node. Its mirror may come at once, or later.
func (m *machine) createStatic(choices [3]int) {
	if len(m.subjects) > 6 {
		return
	}
	m.names++
	s := &subject{pod: newPod(fmt.Sprint("static-", m.names), staticPod), static: true, running: true}
	m.manifest(s.pod)
	m.subjects = append(m.subjects, s)
	if choices[0]%3 > 0 {
		m.putMirror(s)
	}
}

func (m *machine) putMirror(s *subject) {
	m.names++
	mirror := mirrorOf(s.pod, types.UID(fmt.Sprintf("%s-mirror-%d", s.pod.Name, m.names)))
	m.edit(func() {
		s.mirror = mirror.UID
		m.truth[mirror.UID] = s
	})
	m.api.Put(mirror)
}

// recreateMirror removes the mirror of a static pod, puts a new one in its place, or both.
func (m *machine) recreateMirror(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return s.static })
	if s == nil {
		return
	}
	had := m.owns(s)
	if had {
		m.api.Remove(s.pod.Namespace, s.pod.Name)
	}
	if !had || choices[1]%2 == 0 {
		m.putMirror(s)
	}
}

// freeName is the name of a pod that has left the API.
func (m *machine) freeName() string {
	for _, s := range m.subjects {
		if m.api.Pod(s.pod) == nil && !s.static {
			return s.pod.Name
		}
	}
	return ""
}

func (m *machine) deleteByUser(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return !s.deleting && !s.static && m.owns(s) })
	if s == nil {
		return
	}
	m.edit(func() { s.deleting = true })
	m.api.Change(s.pod, userDeletes)
}

// userDeletes is a deletion through the API, which counts as a change of the spec.
func userDeletes(pod *v1.Pod) {
	deleting(pod)
	pod.Generation++
}

func (m *machine) forceDelete(choices [3]int) {
	if s := m.pick(choices[0], m.owns); s != nil {
		m.api.Remove(s.pod.Namespace, s.pod.Name)
	}
}

// recreateElsewhere is the failover of a StatefulSet: the pod is gone, and one of its name
// runs on another node.
func (m *machine) recreateElsewhere(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return !s.static && m.owns(s) })
	if s == nil {
		return
	}
	m.names++
	m.api.Remove(s.pod.Namespace, s.pod.Name)
	m.api.Put(newPod(s.pod.Name, func(p *v1.Pod) {
		p.UID, p.Spec.NodeName = types.UID(fmt.Sprint("elsewhere-", m.names)), "elsewhere"
	}))
}

func (m *machine) secondWriter(choices [3]int) {
	s := m.pick(choices[0], m.owns)
	if s == nil {
		return
	}
	m.edit(func() { s.contested = true })
	m.api.Change(s.pod, func(pod *v1.Pod) {
		ready := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady)
		switch choices[1] % 5 {
		case 0: // the owner of a readiness gate
			gate := fmt.Sprint("gate ", choices[2]%10)
			m.edit(func() { m.gates[pod.UID] = gate })
			pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == "example.com/gate" })
			pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: "example.com/gate", Status: v1.ConditionTrue, Message: gate})
		case 1: // the node controller
			if ready != nil {
				ready.Status, ready.LastTransitionTime = v1.ConditionFalse, metav1.Now()
			}
		case 2: // another writer whose clock is ahead
			if ready != nil {
				ready.Status, ready.LastTransitionTime = v1.ConditionFalse, metav1.NewTime(time.Now().Add(10*365*24*time.Hour))
			}
		case 3: // another writer that takes something away
			pod.Status.PodIP, pod.Status.PodIPs, pod.Status.StartTime = "", nil, nil
		case 4: // not about the status
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "touched", fmt.Sprint(choices[2]))
		}
	})
}

// webhook has an admission webhook change what is written, or ends that.
func (m *machine) webhook(choices [3]int) {
	hooks := []func(*v1.Pod){
		nil,
		func(p *v1.Pod) { p.Status.Reason = "webhook" },
		func(p *v1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }, // as a server that does not know a field
		m.keepReady,
		m.keepPhase,
		func(p *v1.Pod) {
			if c := podstatus.FindCondition(p.Status.Conditions, v1.PodScheduled); c != nil {
				c.Message = "changed"
			}
		},
	}
	which := choices[0] % len(hooks)
	hook := hooks[which]
	m.edit(func() {
		if m.grips {
			m.healed = time.Now()
		}
		m.hooked, m.grips = hook != nil, which == 3 || which == 4
	})
	if hook == nil {
		m.api.SetWebhook(nil)
		return
	}
	m.api.SetWebhook(func(p *v1.Pod) {
		m.edit(func() {
			if s := m.truth[p.UID]; s != nil {
				s.contested = true
			}
		})
		hook(p)
	})
}

func (m *machine) backUp([3]int) {
	m.edit(func() { m.saved = &saved{Backup: m.api.Backup(), record: m.record.clone()} })
}

// restore puts the server back to where it was. The watch begins again with a list. Pods
// that are there again are new to the node, which looks what became of them.
func (m *machine) restore([3]int) {
	if m.saved == nil {
		return
	}
	m.edit(func() {
		m.held, m.restored = nil, time.Now()
		m.record = m.saved.record.clone()
	})
	had := map[*subject]bool{}
	for _, s := range m.subjects {
		had[s] = m.owns(s)
	}
	m.restoreMirrors()
	for _, pod := range m.api.Restore(m.saved.Backup) {
		m.watched(watchEvent{pod: pod, gone: true})
	}
	if !m.lag {
		m.relist()
		m.findAgain()
	}
	for _, s := range m.subjects {
		// What the disk has not taken is lost with the process. A pod that was gone begins again.
		kept := s.kept && had[s] && m.inJournal(s)
		m.edit(func() {
			s.contested = true
			if !kept {
				s.kept, s.end = false, end{}
			}
		})
		if m.owns(s) && !had[s] {
			s.lost = false
			m.reportAgain(s)
		}
	}
}

// restoreMirrors notes which mirrors the API has after a restore.
func (m *machine) restoreMirrors() {
	for _, s := range m.subjects {
		if uid := m.saved.UID(s.pod.Namespace, s.pod.Name); s.static && uid != "" {
			m.edit(func() { s.mirror = uid })
		}
	}
}

// wait lets up to a minute pass. No pod may cost many requests in it.
func (m *machine) wait(choices [3]int) {
	m.api.ForgetRequests()
	pass(time.Duration(choices[0]) * time.Millisecond)
	counts := map[string]int{}
	for _, s := range m.api.Requests() {
		counts[s.String()]++
	}
	for request, n := range counts {
		if n > requestsAMinute && (n > 2*requestsAMinute || !m.hooked || m.fault == nil) {
			m.edit(func() { m.violated("costly: %d times %s in %d ms without an event", n, request, choices[0]) })
		}
	}
}

// requestsAMinute bounds what a pod may cost that keeps failing: 8 tries of its own back-off,
// of which a fifth may be taken off, and a probe each 5 s. Lists, which all pods share, are
// needed for no more than one pod in each turn. Of two obstacles in turns each begins its schedule again.
const requestsAMinute = 30

func (m *machine) removeOrphans([3]int) {
	keep := map[types.UID]bool{}
	for _, s := range m.subjects {
		if s.static || m.owns(s) {
			keep[s.pod.UID] = true
		} else {
			s.lost = true
		}
	}
	m.manager.RemoveOrphanedStatuses(keep)
}

// restart is a crash: what only the memory held is lost, the journal stays. As after every
// start, the workers report again what they see. The manifests are read after the start.
func (m *machine) restart(choices [3]int) {
	m.stop()
	m.process.die()
	m.edit(func() { m.held, m.lag = nil, false })
	m.record.forgetVersions()
	m.reviveOutdatedEnds()
	m.start()
	if choices[1]%2 == 0 { // the workers come later
		synctest.Wait()
	}
	for i, s := range m.subjects {
		if s.static {
			m.manifest(s.pod)
			if s.ended && (choices[0]+i)%2 == 0 { // its end is not remembered
				m.edit(func() { s.ended, s.finished, s.running = false, false, true })
			}
		}
		if s.lost = !s.static && !m.owns(s); !s.lost {
			m.reportAgain(s)
		}
	}
}
