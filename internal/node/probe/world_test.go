package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/runtime"
)

// world is a prober in virtual time with everything around it faked: the status manager,
// the pod workers and what containers answer. Its diary has what was told to whom, in order.
type world struct {
	t      *testing.T
	prober *Prober
	stop   func()
	// edit, if set, changes the options of each prober.
	edit func(*Options)
	// turn lets one sync of a worker end before the next begins.
	turn sync.Mutex

	mu       sync.Mutex
	pods     map[string]*fakePod
	answers  map[string]string // by "pod/kind"; success if unset
	statuses map[types.UID]v1.PodStatus
	told     []note
	asked    []asked
}

type fakePod struct {
	manifest *v1.Pod
	state    v1.ContainerState
	id       string
}

// note is a line of the diary.
type note struct {
	pod  string
	kind runtime.ProbeKind
	line string
}

// asked is one probe that was answered; one without ID is a restart of the agent.
type asked struct {
	id     string
	kind   runtime.ProbeKind
	result result
}

// newWorld starts a prober, which the test's end stops. To be called inside a bubble.
func newWorld(t *testing.T, edit func(*Options)) *world {
	w := &world{
		t: t, edit: edit, pods: map[string]*fakePod{}, answers: map[string]string{},
		statuses: map[types.UID]v1.PodStatus{},
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// start makes a new process of the agent: a prober that knows nothing.
func (w *world) start() {
	options := Options{
		Exec:      func(context.Context, string, []string) (runtime.ExecResult, error) { panic("replaced below") },
		Status:    (*fakeStatus)(w),
		Unhealthy: w.unhealthy,
		Sync:      func(uid types.UID) { w.sync(string(uid)) },
		Recorder:  (*fakeRecorder)(w),
		Spread:    func(period time.Duration) time.Duration { return period / 2 },
	}
	if w.edit != nil {
		w.edit(&options)
	}
	prober, err := New(options)
	if err != nil {
		w.t.Fatal(err)
	}
	prober.check = (&fakeHandler{w}).check
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- prober.Run(ctx) }()
	w.mu.Lock()
	w.prober = prober
	w.mu.Unlock()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}
}

// restart kills the agent, which forgets everything but what it reported, and starts it
// again: its workers find the pods as they are now.
func (w *world) restart() {
	w.stop()
	w.stop = func() {}
	w.mu.Lock()
	w.asked = append(w.asked, asked{})
	w.mu.Unlock()
	w.start()
	for _, name := range w.names() {
		w.prober.AddPod(w.pods[name].manifest)
		w.sync(name)
	}
}

func (w *world) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name := range w.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// add makes a pod with one container. Its name is its UID too.
func (w *world) add(name string, container v1.Container) {
	container.Name = "app"
	manifest := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{container}},
	}
	w.mu.Lock()
	w.pods[name] = &fakePod{manifest: manifest, state: waits}
	w.mu.Unlock()
	w.prober.AddPod(manifest)
	w.sync(name)
}

// run has the container of a pod running under an ID from now on.
func (w *world) run(name, id string) {
	w.mu.Lock()
	w.pods[name].id = id
	w.pods[name].state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}
	w.mu.Unlock()
	w.sync(name)
}

func (w *world) exit(name string) {
	w.mu.Lock()
	w.pods[name].state = fails
	w.mu.Unlock()
	w.sync(name)
}

// sync is what a pod worker does: it makes a status of what it sees and what was reported
// for the same container ID, asks the prober, and reports it.
func (w *world) sync(name string) {
	w.turn.Lock()
	defer w.turn.Unlock()
	w.mu.Lock()
	p, prober := w.pods[name], w.prober
	if p == nil {
		w.mu.Unlock()
		return
	}
	c := v1.ContainerStatus{Name: "app", ContainerID: p.id, State: p.state}
	for _, old := range w.statuses[types.UID(name)].ContainerStatuses {
		if old.ContainerID == p.id && c.State.Running != nil {
			c.Started, c.Ready = old.Started, old.Ready
		}
	}
	manifest := p.manifest
	w.mu.Unlock()
	status := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{c}}
	prober.UpdatePodStatus(manifest, &status)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.statuses[types.UID(name)] = status
}

func (w *world) status(name string) *v1.ContainerStatus {
	w.sync(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.statuses[types.UID(name)].ContainerStatuses[0].DeepCopy()
}

// wait lets time pass, and all that happens at the end of it happen.
func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) answer(name string, kind runtime.ProbeKind, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[name+"/"+string(kind)] = answer
}

func (w *world) note(pod string, kind runtime.ProbeKind, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, note{pod, kind, pod + ": " + fmt.Sprintf(format, args...)})
}

// diary hands out what was told since the last call. Probes of the same instant are
// ordered by pod and kind, since they run side by side.
func (w *world) diary() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	order := []runtime.ProbeKind{runtime.StartupProbe, runtime.ReadinessProbe, runtime.LivenessProbe}
	slices.SortStableFunc(w.told, func(a, b note) int {
		return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(slices.Index(order, a.kind), slices.Index(order, b.kind)))
	})
	var lines []string
	for _, n := range w.told {
		lines = append(lines, n.line)
	}
	w.told = nil
	return lines
}

func (w *world) unhealthy(f Failure) {
	grace := "the pod's"
	if f.Grace != nil {
		grace = fmt.Sprintf("%ds", *f.Grace)
	}
	w.note(string(f.Pod), f.Kind, "unhealthy %s by %s: %s, grace %s", f.ContainerID, f.Kind, f.Message, grace)
}

// fakeStatus stands for the status manager.
type fakeStatus world

func (s *fakeStatus) GetPodStatus(uid types.UID) (v1.PodStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, ok := s.statuses[uid]
	return *status.DeepCopy(), ok
}

func (s *fakeStatus) SetContainerStartup(uid types.UID, id string, started bool) error {
	(*world)(s).note(string(uid), runtime.StartupProbe, "%s started=%v", id, started)
	return s.set(uid, id, func(c *v1.ContainerStatus) { c.Started = &started })
}

func (s *fakeStatus) SetContainerReadiness(uid types.UID, id string, ready bool) error {
	(*world)(s).note(string(uid), runtime.ReadinessProbe, "%s ready=%v", id, ready)
	return s.set(uid, id, func(c *v1.ContainerStatus) { c.Ready = ready })
}

func (s *fakeStatus) set(uid types.UID, id string, set func(*v1.ContainerStatus)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.statuses[uid]
	for i := range status.ContainerStatuses {
		if status.ContainerStatuses[i].ContainerID == id {
			set(&status.ContainerStatuses[i])
			return nil
		}
	}
	return errors.New("no such container")
}

type fakeRecorder world

func (r *fakeRecorder) Event(pod *v1.Pod, container, eventType, reason, message string) {
	kind, _, _ := strings.Cut(message, " ")
	(*world)(r).note(pod.Name, runtime.ProbeKind(strings.ToLower(kind)), "event %s/%s %s", eventType, reason, message)
}

// fakeHandler answers probes as the world says. A probe's first word of command is its kind.
type fakeHandler struct{ w *world }

func (f *fakeHandler) check(ctx context.Context, q question) answer {
	name, kind := f.w.podOf(q.containerID), runtime.ProbeKind(q.handler.Exec.Command[0])
	f.w.mu.Lock()
	word := f.w.answers[name+"/"+string(kind)]
	f.w.mu.Unlock()
	found := f.find(ctx, q.timeout, word)
	if ctx.Err() == nil {
		f.w.note(name, kind, "probed %s %s: %v", q.containerID, kind, found.result)
		f.w.mu.Lock()
		f.w.asked = append(f.w.asked, asked{id: q.containerID, kind: kind, result: found.result})
		f.w.mu.Unlock()
	}
	return found
}

func (f *fakeHandler) find(ctx context.Context, timeout time.Duration, word string) answer {
	word, late, _ := strings.Cut(word, " after ")
	if late != "" { // and it does not care whether anybody still waits
		d, err := time.ParseDuration(late)
		if err != nil {
			f.w.t.Errorf("answer after %q: %v", late, err)
		}
		time.Sleep(d)
	}
	switch word {
	case "hang":
		backoff.Sleep(ctx, timeout)
		return failed("timed out")
	case "failure":
		return failed("not well")
	case "warning":
		return answer{result: success, warning: true, message: "elsewhere"}
	case "error":
		return undone(errors.New("no way to ask"))
	}
	return succeeded("well")
}

// podOf finds the pod of a container, whose ID is POD-NUMBER.
func (w *world) podOf(id string) string {
	name, _, _ := strings.Cut(id, "-")
	return name
}

func describe(c *v1.ContainerStatus) string {
	started := "unset"
	if c.Started != nil {
		started = fmt.Sprint(*c.Started)
	}
	return fmt.Sprintf("started=%s ready=%v", started, c.Ready)
}
