package status

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/journal"
)

// evictedOnly is what a node reports of an eviction before the containers have stopped.
var evictedOnly = v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Message: "out of memory"}

// A status without container statuses does not prove that the containers have stopped. A process that
// starts with the journal of an earlier one knows no more.
func TestWithheldEnd_StaysWithheldAfterARestart(t *testing.T) {
	for name, proof := range map[string]func(*Manager, *v1.Pod){
		"TerminatePod": func(m *Manager, pod *v1.Pod) { must(m.TerminatePod(pod)) },
		"a report of the ends": func(m *Manager, pod *v1.Pod) {
			_, err := m.SetPodStatus(pod, ended(pod, 137))
			must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "journal")
				open := func() *journal.Durable {
					j, err := journal.Open(path, journal.Options{NodeName: "node"})
					must(err)
					return j
				}
				j := open()
				first := newWorld(t, withJournal(j))
				pod := first.create("web")
				first.run()
				first.set(pod, running(pod, true))
				synctest.Wait()
				if _, err := first.manager.SetPodStatus(pod, evictedOnly); !IsWarning(err) {
					t.Errorf("the report returned %v, want a Warning: the phase is withheld", err)
				}
				time.Sleep(time.Minute)
				wantPhase := func(w *world, story string, want v1.PodPhase) {
					t.Helper()
					synctest.Wait()
					if got := w.api.Pod(pod).Status.Phase; got != want {
						t.Errorf("%s: the API says %s, want %s", story, got, want)
					}
				}
				wantPhase(first, "before the restart", v1.PodRunning)
				first.stop()
				must(j.Close())

				again := open()
				defer again.Close()
				second := newWorld(t, withJournal(again))
				second.api.Restore(first.api.Backup())
				second.table.Set(second.api.Pod(pod))
				second.run()
				time.Sleep(time.Hour)
				wantPhase(second, "after the restart", v1.PodRunning)
				if pending := second.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitWithheld.String() {
					t.Errorf("pending is %+v, want the withheld end", pending)
				}
				proof(second.manager, second.api.Pod(pod))
				time.Sleep(time.Minute)
				wantPhase(second, "after the proof", v1.PodFailed)
			})
		})
	}
}

// The reporter that CompleteReports is for knows the phase of a job and nothing else.
func TestCompletedReportOfSuccess_EndsContainersAndPhaseTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.CompleteReports = true }).runWith("job", restartNever)
		w.report(pod, running(pod, true))
		if _, err := w.manager.SetPodStatus(pod, v1.PodStatus{Phase: v1.PodSucceeded}); err != nil {
			t.Errorf("the report returned %v", err)
		}
		synctest.Wait()
		api := w.api.Pod(pod).Status
		if end := api.ContainerStatuses[0].State.Terminated; api.Phase != v1.PodSucceeded || end == nil || end.ExitCode != 0 {
			t.Errorf("the API says %s with container %+v; want Succeeded and an end with code 0", api.Phase, api.ContainerStatuses[0].State)
		}
		w.wantNothingPending()
	})
}

// A job of some batch systems is reported with containers that always run, and ends by its phase.
func TestEndWithRunningContainers_IsWithheldAndSaidSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		w, pod := newWorld(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }).runWith("job", restartNever)
		w.report(pod, running(pod, true))
		report := func(startedAt time.Time) error {
			status := running(pod, false)
			status.Phase = v1.PodSucceeded
			status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(startedAt)
			_, err := w.manager.SetPodStatus(pod, status)
			return err
		}
		began := time.Unix(1000, 0)
		for poll := range 3 {
			err := report(began)
			withheld, ok := errors.AsType[*WithheldError](err)
			if !IsWarning(err) || !ok || withheld.Phase != v1.PodSucceeded || len(withheld.Containers) != 1 || withheld.Containers[0] != "main" {
				t.Errorf("poll %d: the report returned %v, want a Warning that names Succeeded and main", poll, err)
			}
			if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitWithheld.String() {
				t.Errorf("poll %d: pending is %+v, want the withheld end", poll, pending)
			}
		}
		for range 12 {
			time.Sleep(5 * time.Second)
			began = began.Add(5 * time.Second)
			report(began) // another status each time
		}
		synctest.Wait()
		if lines := strings.Count(log.String(), "phase withheld"); lines != 1 || !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("%d lines of the log say that the end is withheld, want one warning:\n%s", lines, log.String())
		}
		if phase := w.api.Pod(pod).Status.Phase; phase != v1.PodRunning {
			t.Errorf("the API says %s, want Running: a container is reported running", phase)
		}
		must(w.manager.SetContainerReadiness(pod.UID, "process://job-uid", false))
		must(w.manager.TerminatePod(pod))
		synctest.Wait()
		if phase := w.api.Pod(pod).Status.Phase; phase != v1.PodSucceeded {
			t.Errorf("after TerminatePod the API says %s, want Succeeded", phase)
		}
		w.wantNothingPending()
	})
}

// Batch systems list their jobs for long after the pods are gone.
func TestReportsOfAPodThatIsGone_CostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Pods = nil })
		pod := newPod("job")
		w.api.Put(pod)
		pod = w.api.Pod(pod)
		w.manager.ObservePod(pod)
		w.run()
		w.report(pod, running(pod, true))
		must(w.api.Delete(context.Background(), pod.Namespace, pod.Name, pod.UID))
		w.manager.ObserveDelete(pod)
		w.api.ForgetRequests()
		var repeated error
		for range 590 {
			time.Sleep(time.Second)
			_, repeated = w.manager.SetPodStatus(pod, running(pod, true))
		}
		synctest.Wait()
		if sent := w.api.Log(); len(sent) > 2 {
			t.Errorf("%d requests for a pod that is gone, want one GET and one LIST", len(sent))
		}
		if repeated != nil {
			t.Errorf("repeating the last report returned %v, want no error", repeated)
		}
		if _, err := w.manager.SetPodStatus(pod, running(pod, false)); !errors.Is(err, ErrUnknownPod) {
			t.Errorf("another report returned %v, want ErrUnknownPod", err)
		}
		must(w.manager.TerminatePod(pod))
		// A server that was restored from a backup may have the pod again.
		pod.ResourceVersion = ""
		w.api.Put(pod)
		w.manager.ObservePod(w.api.Pod(pod))
		w.report(pod, running(pod, true))
		if phase := w.api.Pod(pod).Status.Phase; phase != v1.PodRunning {
			t.Errorf("the pod is back and the API says %s, want Running", phase)
		}
	})
}
