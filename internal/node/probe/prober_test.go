package probe

import (
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
	"pgregory.net/rapid"

	"github.com/statusd/statusd/runtime"
)

func every(period int32) *v1.Probe { return &v1.Probe{PeriodSeconds: period, FailureThreshold: 1} }

func TestNewNamesEverythingThatIsMissing(t *testing.T) {
	_, err := New(Options{})
	for _, word := range []string{"probe: ", "Exec", "Status", "Unhealthy"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("New without options: got error %v, want it to say %q", err, word)
		}
	}
}

// TestQ5_AddPodFindsContainersThatWereReportedBefore is a worker that reports a pod first
// and adds it then, as the kubelet does.
func TestQ5_AddPodFindsContainersThatWereReportedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.add("web", withHandlers(v1.Container{StartupProbe: every(1), ReadinessProbe: every(4)}))
		w.run("web", "web-1")
		w.wait(0)
		w.stop()
		w.start()
		w.sync("web")
		if got := describe(w.status("web")); got != "started=true ready=true" {
			t.Errorf("reported again after a restart, not added yet: got %s, want started and ready as before", got)
		}
		w.diary()
		w.prober.AddPod(w.pods["web"].manifest)
		w.wait(3 * time.Second)
		if got, want := w.diary(), []string{"web: probed web-1 readiness: success"}; !slices.Equal(got, want) {
			t.Errorf("added then: got %q, want %q", got, want)
		}
	})
}

func TestAnUnknownPodIsNotReadyBeforeItIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: "other"},
			Spec:       v1.PodSpec{Containers: []v1.Container{withHandlers(v1.Container{Name: "app", ReadinessProbe: every(1)})}},
		}
		status := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "app", ContainerID: "other-1", State: runs}}}
		w.prober.UpdatePodStatus(pod, &status)
		w.wait(5 * time.Second)
		if got := describe(&status.ContainerStatuses[0]); got != "started=true ready=false" {
			t.Errorf("a pod that was never added: got %s, want started=true ready=false", got)
		}
		if told := w.diary(); len(told) > 0 {
			t.Errorf("a pod that was never added is probed: %q", told)
		}
	})
}

// TestQ14_APodFoundWhileItIsBeingDeleted is what a restarted agent sees of a stopping pod.
func TestQ14_APodFoundWhileItIsBeingDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.add("web", withHandlers(v1.Container{ReadinessProbe: every(1), LivenessProbe: every(1)}))
		now := metav1.Now()
		stopping := w.pods["web"].manifest.DeepCopy()
		stopping.DeletionTimestamp = &now
		w.prober.AddPod(stopping)
		w.run("web", "web-1")
		w.wait(0)
		want := []string{"web: probed web-1 readiness: success", "web: web-1 ready=true"}
		if got := w.diary(); !slices.Equal(got, want) {
			t.Errorf("got %q, want readiness only: %q", got, want)
		}
	})
}

func TestSpreadOnlyDelaysContainersThatRanBeforeTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		w := newWorld(t, func(o *Options) {
			o.Spread = func(period time.Duration) time.Duration {
				asked = append(asked, period)
				return 3 * time.Second
			}
		})
		w.add("old", withHandlers(v1.Container{ReadinessProbe: every(8)}))
		w.run("old", "old-1")
		w.wait(time.Second)
		if len(asked) > 0 {
			t.Errorf("the probe of a container that the agent saw start was spread")
		}
		w.diary()
		w.restart()
		w.add("new", withHandlers(v1.Container{ReadinessProbe: every(8)}))
		w.run("new", "new-1")
		w.wait(2 * time.Second)
		early := w.diary()
		w.wait(time.Second)
		if late := w.diary(); len(early) != 2 || !strings.HasPrefix(early[0], "new: probed") || !slices.Equal(late, []string{"old: probed old-1 readiness: success"}) {
			t.Errorf("after a restart: got %q within 2 s and %q after 3 s, want new-1 at once and old-1 after 3 s", early, late)
		}
		if !slices.Equal(asked, []time.Duration{8 * time.Second}) {
			t.Errorf("Spread was asked for %v, want once for the period of 8 s", asked)
		}
	})
}

func TestTheDefaultSpreadIsPartOfThePeriod(t *testing.T) {
	var o Options
	o.setDefaults()
	for range 100 {
		if got := o.Spread(time.Second); got < 0 || got >= time.Second {
			t.Fatalf("got %v, want something from 0 to 1 s", got)
		}
	}
}

// TestAResultThatCannotBeStoredIsInTheNextStatus is the race of #139244: the result comes
// between a status being made and being stored.
func TestAResultThatCannotBeStoredIsInTheNextStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.add("web", withHandlers(v1.Container{ReadinessProbe: every(1)}))
		w.mu.Lock()
		p := w.pods["web"]
		p.id, p.state = "web-1", runs
		w.mu.Unlock()
		made := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "app", ContainerID: "web-1", State: runs}}}
		w.prober.UpdatePodStatus(p.manifest, &made)
		if made.ContainerStatuses[0].Ready {
			t.Fatal("ready before it was probed")
		}
		w.wait(time.Second) // the manager does not know web-1 yet
		w.mu.Lock()
		stored := w.statuses["web"].ContainerStatuses[0].DeepCopy()
		w.mu.Unlock()
		if got := describe(stored); got != "started=true ready=true" || stored.ContainerID != "web-1" {
			t.Errorf("after the sync that was asked for: got %s of %q, want web-1 started and ready", got, stored.ContainerID)
		}
	})
}

// TestRunWaitsForProbesUnderWay has a probe that takes its time even when no caller waits.
func TestRunWaitsForProbesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.answer("web", runtime.LivenessProbe, "failure after 30s")
		w.add("web", withHandlers(v1.Container{LivenessProbe: every(1)}))
		w.run("web", "web-1")
		w.wait(time.Second)
		stopped := time.Now()
		w.stop()
		w.stop = func() {}
		if took := time.Since(stopped); took != 29*time.Second {
			t.Errorf("Run returned after %v, want it to wait the 29 s that the probe still took", took)
		}
		if told := w.diary(); len(told) > 0 {
			t.Errorf("told after the end of Run's context: %q", told)
		}
	})
}

// TestReadyOnlyAsTheProbesFound has random answers, replacements and restarts, and compares
// with all results that were ever handed out for the container's ID.
func TestReadyOnlyAsTheProbesFound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		program := rapid.SliceOfN(rapid.Custom(drawStep), 1, 25).Draw(r, "program")
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = runProgram(t, program) })
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

type step struct {
	do     string
	kind   runtime.ProbeKind
	answer string
	wait   time.Duration
}

func drawStep(r *rapid.T) step {
	return step{
		do:     rapid.SampledFrom([]string{"answer", "run", "exit", "restart", "nothing"}).Draw(r, "do"),
		kind:   rapid.SampledFrom([]runtime.ProbeKind{runtime.StartupProbe, runtime.ReadinessProbe, runtime.LivenessProbe}).Draw(r, "kind"),
		answer: rapid.SampledFrom([]string{"success", "failure", "error"}).Draw(r, "answer"),
		wait:   time.Duration(rapid.IntRange(0, 4).Draw(r, "seconds")) * time.Second,
	}
}

// runProgram says what was wrong, if anything was.
func runProgram(t *testing.T, program []step) string {
	limits := schedule{successes: 2, failures: 2}
	twice := func() *v1.Probe { return &v1.Probe{PeriodSeconds: 1, SuccessThreshold: 2, FailureThreshold: 2} }
	w := newWorld(t, nil)
	w.add("web", withHandlers(v1.Container{StartupProbe: twice(), ReadinessProbe: twice(), LivenessProbe: twice()}))
	for i, s := range program {
		switch s.do {
		case "answer":
			w.answer("web", s.kind, s.answer)
		case "run":
			w.run("web", fmt.Sprintf("web-%d", i))
		case "exit":
			w.exit("web")
		case "restart":
			w.restart()
		}
		w.wait(s.wait)
		got := w.status("web")
		running := got.State.Running != nil
		started := running && w.decided(got.ContainerID, runtime.StartupProbe, limits) == success
		ready := started && w.decided(got.ContainerID, runtime.ReadinessProbe, limits) == success
		if *got.Started != started || got.Ready != ready {
			return fmt.Sprintf("container %s, running=%v, after step %d: got %s, want started=%v ready=%v\nprobed: %+v",
				got.ContainerID, running, i, describe(got), started, ready, w.asked)
		}
	}
	return ""
}

// decided goes through everything that was ever found for a container. A series does not
// go on beyond a restart of the agent, a result that was decided stays.
func (w *world) decided(id string, kind runtime.ProbeKind, limits schedule) result {
	w.mu.Lock()
	defer w.mu.Unlock()
	verdict := unknown
	var series []result
	for _, a := range w.asked {
		switch {
		case a.id == "":
			series = nil
		case a.id == id && a.kind == kind && a.result != unknown:
			series = append(series, a.result)
			if decided := lastEqual(series, limits); decided != unknown {
				verdict = decided
			}
		}
	}
	return verdict
}

// TestAllMethodsMayBeCalledAtAnyTime is for the race detector.
func TestAllMethodsMayBeCalledAtAnyTime(t *testing.T) {
	prober, err := New(Options{
		Exec: func(context.Context, string, []string) (runtime.ExecResult, error) {
			return runtime.ExecResult{}, errors.New("never here")
		},
		Status:    unreachableStatus{},
		Unhealthy: func(Failure) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running, callers sync.WaitGroup
	running.Go(func() { _ = prober.Run(ctx) })
	for _, uid := range []types.UID{"a", "b", "c", "d"} {
		callers.Go(func() {
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{UID: uid},
				Spec:       v1.PodSpec{Containers: []v1.Container{withHandlers(v1.Container{Name: "app", ReadinessProbe: every(1), LivenessProbe: every(1)})}},
			}
			for i := range 50 {
				prober.AddPod(pod)
				id := string(uid) + strings.Repeat("x", i%3)
				prober.UpdatePodStatus(pod, &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "app", ContainerID: id, State: runs}}})
				prober.StopLivenessAndStartup(uid)
				if i%5 == 0 {
					prober.RemovePod(uid)
				}
			}
		})
	}
	callers.Wait()
	cancel()
	running.Wait()
}

type unreachableStatus struct{}

func (unreachableStatus) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }
func (unreachableStatus) SetContainerStartup(types.UID, string, bool) error {
	return errors.New("never here")
}
func (unreachableStatus) SetContainerReadiness(types.UID, string, bool) error {
	return errors.New("never here")
}
