package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Outcome is what came of a program.
type Outcome struct {
	// Difference is the first unwanted difference, or "".
	Difference string
	// Wanted counts the wanted differences by rule, one a pod and rule.
	Wanted map[string]int
	// Corrected counts the corrections by name, and Pods the pods.
	Corrected map[string]int
	Pods      int
	// Trace is the program with the requests that each step led to.
	Trace []string
}

// Run puts both managers through a program. Run must be called inside a synctest bubble.
func Run(program Program) Outcome {
	r := newRun()
	for _, s := range r.sides {
		s.start()
	}
	// Half a second off the ticks, so that a step never meets one.
	time.Sleep(500 * time.Millisecond)
	for _, step := range append(slices.Clip(program), Step{Op: "settle"}) {
		r.tracef("%s  %s", clock(), step)
		r.observe() // what the ticks since the last step have done
		r.afterLosses(func() { r.do(step) })
		r.traceRequests()
		r.observe()
		if r.difference != "" {
			break
		}
		r.sleep(time.Second)
	}
	for _, s := range r.sides {
		s.stop()
	}
	time.Sleep(11 * time.Second) // the kubelet's goroutine leaves at its next tick
	return Outcome{Difference: r.difference, Wanted: r.wanted, Corrected: r.kubelet().tally.all(), Pods: len(r.pods), Trace: r.trace}
}

// kubeletTick is the period of the kubelet's full pass.
const kubeletTick = 10 * time.Second

// sleep lets time pass. Before a tick the watch shows what is new: what the kubelet reads then
// is what statusd is shown. The watch shows also what statusd writes meanwhile, such as details that
// have waited.
func (r *run) sleep(d time.Duration) {
	if now := time.Since(r.began); now/kubeletTick != (now+d)/kubeletTick {
		r.watch()
	}
	before := r.versions()[theStatusd]
	r.afterLosses(func() { time.Sleep(d) })
	if r.versions()[theStatusd] != before {
		r.watch()
	}
}

// afterLosses runs do, and if the answer to a request was lost meanwhile, lets time pass until both
// sides have tried again: the kubelet at a tick, statusd after a backoff. The next step would
// otherwise find the two APIs in different states.
func (r *run) afterLosses(do func()) {
	losing := r.losing()
	do()
	synctest.Wait()
	if losing > r.losing() {
		r.sleep(11 * time.Second)
	}
}

// run is the state of a program that is being run.
type run struct {
	sides [2]side // the kubelet's, statusd's
	// pods are all pods of the program in order of creation, byName the newest of each name.
	pods   []*nodePod
	byName map[string]*nodePod
	// delivered is what the watch of each side has shown, by UID.
	delivered  [2]map[types.UID]*v1.Pod
	down       bool
	began      time.Time
	wanted     map[string]int
	difference string
	trace      []string
}

const (
	theKubelet = iota
	theStatusd
)

var sideNames = [2]string{"kubelet", "statusd"}

func newRun() *run {
	r := &run{byName: make(map[string]*nodePod), wanted: make(map[string]int), began: time.Now()}
	workers := safety(r.mayRun)
	r.sides = [2]side{newKubelet(workers), newStatusd(workers)}
	for i := range r.delivered {
		r.delivered[i] = make(map[types.UID]*v1.Pod)
	}
	return r
}

// losing counts the answers that are still to be lost.
func (r *run) losing() int {
	n := 0
	for _, s := range r.sides {
		if s.server().losing() {
			n++
		}
	}
	return n
}

// observe finds a status that one side has forgotten and the other keeps as wanted, and has it
// forgotten there too.
func (r *run) observe() {
	for _, p := range r.pods {
		kept, ours := p.hasCached(r.kubelet()), p.hasCached(r.sides[theStatusd])
		switch {
		case !kept && ours && p.hadCached && r.byName[p.name] != p:
			r.kubelet().tally.count(correctS11)
			r.forget(theStatusd, p)
		case kept && !ours && p.terminated && r.isGone(p):
			r.kubelet().tally.count(correctD5)
			r.forget(theKubelet, p)
		}
		cached, kept := r.kubelet().cached(p.uid())
		p.hadCached = kept
		p.readyAtEnd = p.readyAtEnd || kept && saysReady(cached) && (podstatus.IsTerminal(cached.Phase) || r.hasEnded(theKubelet, p))
	}
}

// hasEnded reports whether the pod has a terminal phase in the API of a side.
func (r *run) hasEnded(side int, p *nodePod) bool {
	pod := r.sides[side].server().current(p.name)
	return pod != nil && (p.static || pod.UID == p.uid()) && podstatus.IsTerminal(pod.Status.Phase)
}

// isGone reports whether neither API has the pod.
func (r *run) isGone(p *nodePod) bool {
	for _, s := range r.sides {
		if pod := s.server().current(p.name); pod != nil && (p.static || pod.UID == p.uid()) {
			return false
		}
	}
	return true
}

// forget removes the status of a pod from one side.
func (r *run) forget(side int, p *nodePod) {
	keep := make(map[types.UID]bool)
	for _, other := range r.pods {
		if other != p {
			keep[other.uid()] = true
		}
	}
	r.sides[side].removeOrphans(keep)
}

func (r *run) kubelet() *kubelet { return r.sides[theKubelet].(*kubelet) }

// mayRun is what the pod workers say; they know no mirror pods.
func (r *run) mayRun(uid types.UID) bool {
	for _, p := range r.pods {
		if p.uid() == uid {
			return p.mayRun
		}
	}
	return false
}

// clock is the time of the bubble, which begins at midnight.
func clock() string { return time.Now().UTC().Format("04:05.0") }

func (r *run) tracef(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

func (r *run) traceRequests() {
	for i, s := range r.sides {
		for _, request := range s.server().requests() {
			r.tracef("    %s: %s", sideNames[i], request)
		}
	}
}

// do takes one step. A step about a pod or container that does not exist does nothing, so
// that shortening a program never makes it invalid.
func (r *run) do(step Step) {
	if slices.Contains(podless, step.Op) {
		r.doPodless(step)
		return
	}
	if step.Op == "pod" {
		r.createPod(step)
		return
	}
	p := r.byName[step.Pod]
	if p == nil {
		return
	}
	if r.isAhead(p) {
		r.catchUp()
	}
	switch step.Op {
	case "run", "exit", "wait", "ready", "started":
		r.doContainer(p, step)
	case "report", "terminate", "stop", "resize":
		r.doReport(p, step)
	default:
		r.doAPI(p, step)
		if !step.has("late") || seenAtOnce(step) {
			r.watch()
			// What the watch shows is put right at once by statusd, and at the next tick by
			// the kubelet.
			r.sleep(11 * time.Second)
			r.watch()
		}
	}
}

// seenAtOnce are writes that the watch shows at once even if the step says late: the message
// and phase that another writer wrote stay with a phase that is withheld (X5), and it depends
// on the time of a look whether they are still there by then.
func seenAtOnce(step Step) bool {
	return step.Op == "write" && (step.has("message") || step.has("phase-running"))
}

func (r *run) doPodless(step Step) {
	switch step.Op {
	case "settle":
		r.settle()
	case "sleep":
		seconds, _ := strconv.Atoi(step.arg(0))
		r.sleep(time.Duration(seconds) * time.Second)
	case "watch":
		r.catchUp()
	case "down":
		if slices.ContainsFunc(r.pods, r.isAhead) || slices.ContainsFunc(r.pods, r.hasTwoGenerations) {
			r.catchUp() // there is no watch to do it by later
		}
		r.setDown(true)
	case "up":
		r.recover()
	case "lose":
		for _, s := range r.sides {
			s.server().loseNext()
		}
	case "orphans":
		r.removeOrphans(step.Args)
	}
}

func (r *run) setDown(down bool) {
	r.down = down
	for _, s := range r.sides {
		s.server().setDown(down)
	}
}

// recover ends an outage, and gives both sides the time to send their pending statuses: the next
// step would otherwise find the two APIs in different states, since the kubelet waits for a tick
// and statusd for the end of a backoff.
func (r *run) recover() {
	r.setDown(false)
	r.quiesce(3)
}

// removeOrphans keeps the pods and mirrors of the node, except the named ones. Before that, both
// sides get the time to send their pending statuses: the kubelet waits for a tick in cases where
// statusd does not, and an earlier removal would not be comparable.
func (r *run) removeOrphans(named []string) {
	if r.down {
		r.recover()
	} else {
		r.catchUp()
	}
	for i, s := range r.sides {
		keep := make(map[types.UID]bool) // the values do not matter
		for uid := range r.delivered[i] {
			keep[uid] = true
		}
		for _, p := range r.pods {
			if _, known := s.known(p.uid()); known {
				keep[p.uid()] = true
			}
			if slices.Contains(named, p.name) {
				delete(keep, p.uid())
			}
			if !keep[p.uid()] {
				p.expected.forget(p.static)
			}
		}
		s.removeOrphans(keep)
		if k, ok := s.(*kubelet); ok {
			k.clearRemoved(r.pods, keep)
		}
	}
	// The kubelet forgets at a tick which versions it has sent (V4).
	r.kubelet().tally.count(correctV4)
	r.sleep(11 * time.Second)
}

// isAhead reports whether one side is further than the other with the end of a pod: has deleted
// it, has seen it go, or has no status of it any more.
func (r *run) isAhead(p *nodePod) bool {
	type end struct{ deleted, known, kept bool }
	var ends [2]end
	for i, s := range r.sides {
		_, known := s.known(p.uid())
		ends[i] = end{s.server().hasDeleted(p.uid()), known, p.hasCached(s)}
	}
	return ends[0] != ends[1]
}

// catchUp gives both sides the time to do what they are about to: the kubelet does at a tick
// what statusd does at once.
func (r *run) catchUp() {
	if !r.down {
		r.quiesce(1)
	}
}

// quiesce lets ticks pass, at least as many as given, until neither side writes any more.
func (r *run) quiesce(ticks int) {
	const enough = 6 // the kubelet writes some pods at each tick (X6)
	for tick, before := 0, [2]int{}; tick < enough && (tick < ticks || r.versions() != before); tick++ {
		before = r.versions()
		r.watch()
		synctest.Wait()
		r.sleep(11 * time.Second)
	}
	r.watch()
	synctest.Wait()
	r.observe()
}

// createPod creates a pod in both APIs, or puts a manifest on the node and its mirror into
// both APIs. A second one of the same name is ignored: see recreate.
func (r *run) createPod(step Step) {
	if r.byName[step.Pod] != nil || step.Pod == "" {
		return
	}
	if len(r.pods) > 0 {
		r.catchUp() // what the watch shows of others with it
	}
	r.addPod(step, 1)
	r.watch()
}

func (r *run) addPod(step Step, incarnation int) {
	p := newNodePod(step, incarnation)
	r.pods = append(r.pods, p)
	r.byName[step.Pod] = p
	p.step = step
	for _, s := range r.sides {
		if p.static {
			s.setPod(p.spec.DeepCopy())
		}
		if !step.has("unmirrored") {
			s.server().create(p.apiPod())
		}
	}
}

// watch delivers the changes of its API to each side.
func (r *run) watch() {
	if r.down {
		return
	}
	for i, s := range r.sides {
		current := s.server().all()
		for _, uid := range slices.Sorted(maps.Keys(r.delivered[i])) {
			if old := r.delivered[i][uid]; current[old.Name] == nil || current[old.Name].UID != uid {
				s.removePod(old)
				delete(r.delivered[i], uid)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(current)) {
			pod := current[name]
			if old := r.delivered[i][pod.UID]; old != nil && old.ResourceVersion == pod.ResourceVersion {
				continue
			}
			pod = fromAPI(pod)
			r.delivered[i][pod.UID] = pod
			s.setPod(pod)
		}
	}
}

// versions is how often the pods of each API have been written or deleted.
func (r *run) versions() (n [2]int) {
	for i, s := range r.sides {
		n[i] = s.server().changes()
	}
	return n
}

// settle gives both sides the time to finish, and compares.
func (r *run) settle() {
	ticks := 1
	if r.down {
		ticks = 3
	}
	r.setDown(false)
	r.quiesce(ticks)
	// A write that keeps coming back changed is put off by statusd for up to five minutes
	// (its guard against fights); all that may differ by then is when it is written.
	if d := r.sides[theStatusd].(*statusd); len(d.manager.Fights()) > 0 {
		for range 30 {
			r.watch()
			synctest.Wait()
			r.sleep(11 * time.Second)
		}
		r.quiesce(1)
	}
	r.compare()
}
