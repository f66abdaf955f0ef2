package simulate

import (
	"fmt"
	"hash/fnv"
	"math"
	"path"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// draw returns a number from 0 to 1 that depends only on the seed, the purpose and the name of the object.
func draw(seed int64, purpose, of string) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%s", seed, purpose, of)
	x := h.Sum64() // the low bits of FNV differ most, the high ones of similar names do not
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

func (s Share) includes(number float64) bool { return s == 0 || number < float64(s) }

func glob(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil // Validate has refused invalid patterns
}

func (m *Match) matches(pod *v1.Pod, seed int64) bool {
	if m.Namespace != "" && m.Namespace != pod.Namespace || !glob(m.Name, pod.Name) || !glob(m.Node, pod.Spec.NodeName) {
		return false
	}
	for key, value := range m.Labels {
		if pod.Labels[key] != value {
			return false
		}
	}
	return m.Share.includes(draw(seed, "match", string(pod.UID)))
}

// behaviorOf returns the behavior of the first rule that matches.
func (s *Simulation) behaviorOf(pod *v1.Pod) *Behavior {
	for i := range s.o.Script.Pods {
		if r := &s.o.Script.Pods[i]; r.Match.matches(pod, s.o.Seed) {
			return &r.Behavior
		}
	}
	return &s.o.Otherwise
}

// The longest wait of a crash loop and its first, as the kubelet's.
const (
	firstWait   = 10 * time.Second
	longestWait = 5 * time.Minute
)

// step is what a simulated pod waits for.
type step uint8

const (
	toStart step = iota // the containers run next
	toReady
	toExit
	toRestart
	toFlap
	toRecover
	toStop
	nothing // it runs until something happens to it, or has ended
)

// pod is a simulated pod. Its timer is the only thing that acts on it by itself.
type pod struct {
	s        *Simulation
	behavior *Behavior

	mu      sync.Mutex // guards what follows; held during a report, so that reports come in order
	spec    *v1.Pod    // the newest copy
	timer   *time.Timer
	next    step
	exits   time.Time // of the containers that run; zero: they do not exit
	started time.Time
	number  int // of the attempt
	running bool
	ready   bool
	ended   bool
	removed bool      // the manager knows that the containers of the deleted pod have ended
	code    int32     // of the last exit
	at      time.Time // of the last exit
	failure *podstatus.Failure
}

// after has the pod take a step later.
func (p *pod) after(d time.Duration, next step) {
	p.next = next
	if p.timer == nil {
		p.timer = time.AfterFunc(d, p.act)
	} else {
		p.timer.Reset(d)
	}
}

func (p *pod) wait() {
	p.next = nothing
	if p.timer != nil {
		p.timer.Stop()
	}
}

// begin begins the life of a pod.
func (p *pod) begin(now time.Time) {
	b := p.behavior
	switch {
	case b.Image != "":
		p.next = nothing
	case b.Start > 0 || b.Jitter > 0:
		wait := time.Duration(b.Start) + time.Duration(draw(p.s.o.Seed, "jitter", string(p.spec.UID))*float64(b.Jitter))
		if began := p.spec.Status.StartTime; began != nil { // in an earlier run
			wait -= now.Sub(began.Time)
		}
		p.after(max(0, wait), toStart)
	default:
		p.start(now)
	}
	p.report()
}

// resume goes on with the life of a pod whose containers an earlier run has started: they have been running meanwhile. resume reports whether
// there are any.
func (p *pod) resume(now time.Time) bool {
	var shown *v1.ContainerStatus
	for i := range p.spec.Status.ContainerStatuses {
		if c := &p.spec.Status.ContainerStatuses[i]; strings.HasPrefix(c.ContainerID, fmt.Sprintf("%s%s/", scheme, p.spec.UID)) {
			shown = c
		}
	}
	if shown == nil {
		return false
	}
	p.number = int(shown.RestartCount)
	ended := shown.State.Terminated
	if ended == nil && shown.State.Running == nil {
		ended = shown.LastTerminationState.Terminated
	}
	switch {
	case shown.State.Running != nil:
		p.running, p.ready = true, shown.Ready
		p.runFrom(shown.State.Running.StartedAt.Time)
		if p.ready {
			p.goOn(now, true)
		} else {
			p.after(max(0, p.started.Add(time.Duration(p.behavior.Ready)).Sub(now)), toReady)
		}
	case ended != nil:
		p.started, p.at, p.code = ended.StartedAt.Time, ended.FinishedAt.Time, ended.ExitCode
		p.afterExit(now)
	default:
		return false
	}
	p.report()
	return true
}

// act takes the step that the timer was set for.
func (p *pod) act() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch p.next {
	case toStart, toRestart:
		if p.next == toRestart {
			p.number++
		}
		p.start(now)
	case toReady:
		p.ready = true
		p.goOn(now, false)
	case toFlap:
		p.ready = false
		p.after(time.Duration(p.behavior.FlapFor), toRecover)
	case toRecover:
		p.ready = true
		p.goOn(now, false)
	case toExit:
		p.exit(now)
	case toStop:
		p.stop(now)
		return
	case nothing:
		return
	}
	p.report()
}

// start starts the containers.
func (p *pod) start(now time.Time) {
	p.running = true
	p.runFrom(now)
	if p.behavior.Ready > 0 {
		p.after(time.Duration(p.behavior.Ready), toReady)
		return
	}
	p.ready = true
	p.goOn(now, true)
}

// runFrom notes when the containers started, and from it when they exit.
func (p *pod) runFrom(started time.Time) {
	p.started = started
	if p.exits = (time.Time{}); p.behavior.Runs > 0 {
		p.exits = started.Add(time.Duration(p.behavior.Runs))
	}
}

// goOn waits for what comes next in the life of a pod that is ready. The first flap comes at a random time, so that pods do not flap
// together.
func (p *pod) goOn(now time.Time, first bool) {
	b := p.behavior
	switch flap := time.Duration(b.FlapEvery - b.FlapFor); {
	case b.FlapEvery > 0 && (p.exits.IsZero() || now.Add(flap).Before(p.exits)):
		if first {
			flap = time.Duration(float64(flap) * draw(p.s.o.Seed, "flap", string(p.spec.UID)))
		}
		p.after(flap, toFlap)
	case !p.exits.IsZero():
		p.after(max(0, p.exits.Sub(now)), toExit)
	default:
		p.wait()
	}
}

// exit ends the containers by themselves.
func (p *pod) exit(now time.Time) {
	p.running, p.ready, p.code, p.at = false, false, p.behavior.ExitCode, now
	p.afterExit(now)
}

// afterExit starts the containers again after their back-off, if the restart policy says so.
func (p *pod) afterExit(now time.Time) {
	again := false
	for i := range p.spec.Spec.Containers {
		again = again || podstatus.ShouldRestart(p.spec, &p.spec.Spec.Containers[i], p.code)
	}
	if !again {
		p.ended = true
		p.wait()
		return
	}
	p.after(max(0, p.at.Add(crashWait(p.number)).Sub(now)), toRestart)
}

func crashWait(number int) time.Duration {
	return min(longestWait, time.Duration(float64(firstWait)*math.Exp2(float64(min(number, 10)))))
}

// remove ends the pod because it is deleted.
func (p *pod) remove() {
	grace := time.Duration(v1.DefaultTerminationGracePeriodSeconds) * time.Second
	if seconds := p.spec.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	switch wait := min(time.Duration(p.behavior.Stop), grace); {
	case p.next == toStop:
	case p.running && wait > 0:
		p.ready = false
		p.after(wait, toStop)
		p.report()
	default:
		p.stop(time.Now())
	}
}

// evict ends the pod because its node has too little of something.
func (p *pod) evict(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.spec.DeletionTimestamp != nil {
		return
	}
	p.failure = &podstatus.Failure{Reason: "Evicted", Message: message}
	p.stop(time.Now())
}

// stop ends the containers for good.
func (p *pod) stop(now time.Time) {
	if p.running {
		p.running, p.ready, p.code, p.at = false, false, 0, now
		if p.failure != nil { // a pod whose containers all exit with 0 has Succeeded, evicted or not
			p.code = 137
		}
	}
	p.ended, p.removed = true, p.spec.DeletionTimestamp != nil
	p.wait()
	p.report()
	if err := p.s.manager().TerminatePod(p.spec); err != nil && !status.IsWarning(err) {
		p.s.o.Logger.Warn("pod not terminated", "pod", p.spec.Namespace+"/"+p.spec.Name, "err", err)
	}
}

// report reports the status that the kubelet would report.
func (p *pod) report() {
	now := time.Now()
	previous, known := p.s.manager().GetPodStatus(p.spec.UID)
	if !known {
		previous = p.spec.Status
	}
	facts := podstatus.Facts{Sandbox: !p.ended, Ended: p.ended, Failure: p.failure}
	if !p.ended {
		facts.IPs = []string{p.s.address(p.spec)}
	}
	spec := &p.spec.Spec
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; !podstatus.IsSidecar(c) && !p.started.IsZero() {
			facts.Attempts = append(facts.Attempts, podstatus.Attempt{Container: c.Name, ID: p.id(c.Name), State: podstatus.AttemptExited, StartedAt: p.started, FinishedAt: p.started})
		} else if !p.started.IsZero() {
			facts.Attempts = append(facts.Attempts, p.attempt(c.Name))
		}
	}
	waiting := map[string]v1.ContainerStateWaiting{}
	for i := range spec.Containers {
		name := spec.Containers[i].Name
		switch {
		case !p.started.IsZero():
			facts.Attempts = append(facts.Attempts, p.attempt(name))
			if p.next == toRestart {
				waiting[name] = v1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
					Message: fmt.Sprintf("back-off %v restarting failed container=%s pod=%s_%s(%s)", crashWait(p.number), name, p.spec.Name, p.spec.Namespace, p.spec.UID)}
			}
		case p.behavior.Image != "":
			waiting[name] = v1.ContainerStateWaiting{Reason: p.behavior.Image, Message: "the image is not pulled in this simulation"}
		}
	}
	facts.Waiting = waiting
	if _, err := p.s.manager().SetPodStatus(p.spec, podstatus.Generate(p.spec, facts, previous, now)); err != nil && !status.IsWarning(err) {
		p.s.o.Logger.Warn("status refused", "pod", p.spec.Namespace+"/"+p.spec.Name, "err", err)
	}
}

// scheme is how the IDs of containers start, and RuntimeVersion names the runtime of the nodes.
const (
	scheme         = "simulated://"
	RuntimeVersion = scheme + "1"
)

func (p *pod) id(container string) string {
	return fmt.Sprintf("%s%s/%s/%d", scheme, p.spec.UID, container, p.number)
}

func (p *pod) attempt(container string) podstatus.Attempt {
	ready := p.ready
	a := podstatus.Attempt{Container: container, ID: p.id(container), Number: p.number, State: podstatus.AttemptRunning, StartedAt: p.started, Ready: &ready, Started: &p.running}
	if !p.running {
		a.State, a.FinishedAt, a.ExitCode = podstatus.AttemptExited, p.at, p.code
	}
	return a
}

// pods are the simulated pods of a node: its handler.
type pods struct {
	s *Simulation

	mu   sync.Mutex // guards pods
	pods map[types.UID]*pod
}
