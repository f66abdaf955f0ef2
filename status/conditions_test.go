package status

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

const ownType v1.PodConditionType = "example.com/Synced"

func withCondition(s v1.PodStatus, t v1.PodConditionType, is v1.ConditionStatus) v1.PodStatus {
	s.Conditions = append(s.Conditions[:len(s.Conditions):len(s.Conditions)], v1.PodCondition{Type: t, Status: is})
	return s
}

func TestDeclaredConditionsAreDeliveredAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.OwnedConditions = []v1.PodConditionType{ownType} }).runWith("web")
		w.set(pod, withCondition(running(pod, true), ownType, v1.ConditionFalse))
		w.wantLog("the first report", "PATCH ns/web")
		began := time.Now()
		time.Sleep(time.Minute)
		w.set(pod, withCondition(running(pod, true), ownType, v1.ConditionTrue))
		w.wantLog("a change of it", "PATCH ns/web")
		got := podstatus.FindCondition(w.api.Pod(pod).Status.Conditions, ownType)
		if got == nil || got.Status != v1.ConditionTrue || got.LastTransitionTime.Sub(began) != time.Minute {
			t.Errorf("the API has %+v, want it to be True since a minute after the first report", got)
		}

		w.api.Change(pod, func(p *v1.Pod) { podstatus.FindCondition(p.Status.Conditions, ownType).Status = v1.ConditionFalse })
		w.wantLog("another writer changes it", "PATCH ns/web")
		w.set(pod, running(pod, true))
		w.wantLog("it is reported no more", "PATCH ns/web")
		if got := podstatus.FindCondition(w.api.Pod(pod).Status.Conditions, ownType); got != nil {
			t.Errorf("the API still has %+v", got)
		}
		w.wantNothingPending()
	})
}

func TestReportedConditionsOfOthersAreWarnedOfOncePerType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		pod := w.create("web", func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: "example.com/Gate", Status: v1.ConditionTrue}}
		})
		w.run()
		w.set(pod, withCondition(running(pod, true), "example.com/Gate", v1.ConditionTrue))
		if strings.Contains(log.String(), "OwnedConditions") {
			t.Errorf("a condition that is repeated from the API is warned of: %s", &log)
		}
		for _, ready := range []bool{true, false, true} {
			w.set(pod, withCondition(running(pod, ready), ownType, v1.ConditionTrue))
		}
		if got := strings.Count(log.String(), "OwnedConditions"); got != 1 || !strings.Contains(log.String(), "type="+string(ownType)) {
			t.Errorf("%d warnings, want one that names the type and the option: %s", got, &log)
		}
		synctest.Wait()
		api := w.api.Pod(pod).Status.Conditions
		if podstatus.FindCondition(api, ownType) != nil || podstatus.FindCondition(api, v1.PodReady) == nil {
			t.Errorf("the API has %+v, want all but the foreign type", api)
		}
	})
}

func TestOptionsRefuseToOwnASharedType(t *testing.T) {
	for _, bad := range []v1.PodConditionType{v1.DisruptionTarget, ""} {
		options := Options{OwnedConditions: []v1.PodConditionType{bad}}
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), "OwnedConditions") {
			t.Errorf("OwnedConditions %q: got %v, want a refusal", bad, err)
		}
	}
}

// The gate is closed while a container is not ready, which changes nothing that is stored
// (E3). Then a probe succeeds.
func TestReadinessGateThatWasClosedMeanwhileHoldsThePodBack(t *testing.T) {
	const gate v1.PodConditionType = "example.com/Gate"
	gated := func(p *v1.Pod) {
		p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: gate}}
		p.Status.Conditions = []v1.PodCondition{{Type: gate, Status: v1.ConditionTrue}}
	}
	closeGate := func(p *v1.Pod) { podstatus.FindCondition(p.Status.Conditions, gate).Status = v1.ConditionFalse }
	for name, create := range map[string]func(w *world) (pod, api *v1.Pod){
		"pod of the API": func(w *world) (*v1.Pod, *v1.Pod) {
			pod := w.create("web", gated)
			return pod, pod
		},
		"static pod": func(w *world) (*v1.Pod, *v1.Pod) {
			static := newPod("web", staticPod, gated)
			static.Status = v1.PodStatus{}
			w.table.Set(static)
			mirror := mirrorOf(static, "mirror")
			gated(mirror)
			return static, w.api.Put(mirror)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pod, api := create(w)
				w.run()
				report := running(pod, false)
				w.set(pod, withCondition(report, gate, v1.ConditionTrue))
				w.api.Change(api, closeGate)
				synctest.Wait()
				id := report.ContainerStatuses[0].ContainerID
				must(w.manager.SetContainerReadiness(pod.UID, id, true))
				synctest.Wait()
				got := w.api.Pod(api).Status
				if isReady(&got) || !got.ContainerStatuses[0].Ready {
					t.Errorf("Ready %t, container ready %t: the gate is closed, want only the container ready", isReady(&got), got.ContainerStatuses[0].Ready)
				}
			})
		})
	}
}

func TestLeavingATerminalPhaseIsRefusedAlsoIfNothingElseChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web", restartNever)
		w.set(pod, ended(pod, 1))
		again := ended(pod, 1)
		again.Phase = v1.PodRunning
		changed, err := w.manager.SetPodStatus(pod, again)
		if phase, ok := errors.AsType[*PhaseError](err); changed || !ok || phase.Wanted != v1.PodRunning {
			t.Errorf("got %v, %v, want a PhaseError and no change", changed, err)
		}
		if got := w.counter("statusd_pod_status_refused_total"); got != 1 {
			t.Errorf("%v refusals counted, want 1", got)
		}
	})
}

// What virtual kubelets report: the API server completes it, and the answer must not be
// taken for another writer's.
func TestAddressesThatTheServerCompletesCostOneRequest(t *testing.T) {
	for name, edit := range map[string]func(*v1.PodStatus){
		"podIP and hostIP only": func(s *v1.PodStatus) { s.PodIPs, s.HostIPs = nil, nil },
		"podIPs only":           func(s *v1.PodStatus) { s.PodIP = "" },
		"hostIPs only":          func(s *v1.PodStatus) { s.HostIP = "" },
		"a contradiction": func(s *v1.PodStatus) {
			s.PodIPs, s.HostIPs = []v1.PodIP{{IP: "10.9.9.9"}}, []v1.HostIP{{IP: "10.9.9.8"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := newWorld(t).runWith("web")
				for _, ready := range []bool{true, false, true} {
					report := running(pod, ready)
					report.HostIP, report.HostIPs = "192.0.2.1", []v1.HostIP{{IP: "192.0.2.1"}}
					report.PodIP, report.PodIPs = "10.0.0.1", []v1.PodIP{{IP: "10.0.0.1"}}
					edit(&report)
					w.set(pod, report)
					w.wantLog("one change", "PATCH ns/web")
					time.Sleep(10 * time.Minute)
					w.wantLog("nothing more in ten minutes")
				}
				if fights := w.manager.Fights(); len(fights) > 0 {
					t.Errorf("fights: %+v", fights)
				}
				w.wantNothingPending()
			})
		})
	}
}

// A bridge to a batch system knows the phase of a job and little else. What it does not mention is
// filled in, and what others have written stays.
func TestHalfAReportIsCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.CompleteReports = true })
		pod := w.create("job", restartNever, func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{
				{Type: v1.PodScheduled, Status: v1.ConditionTrue},
				{Type: "example.com/gate", Status: v1.ConditionTrue},
			}
		})
		w.run()
		w.report(pod, v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.7"})
		got := w.api.Pod(pod).Status
		if got.Phase != v1.PodRunning || len(got.ContainerStatuses) != 1 || len(got.PodIPs) != 1 || got.StartTime == nil || got.QOSClass == "" {
			t.Errorf("the API has %s with %d containers, IPs %v, started %v, class %q: the report was not completed",
				got.Phase, len(got.ContainerStatuses), got.PodIPs, got.StartTime, got.QOSClass)
		}
		for _, want := range []v1.PodConditionType{v1.PodScheduled, v1.PodInitialized, v1.PodReady, v1.ContainersReady, "example.com/gate"} {
			if podstatus.FindCondition(got.Conditions, want) == nil {
				t.Errorf("the API's pod has no condition %s", want)
			}
		}
		patches := w.api.Count("PATCH")
		w.report(pod, v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.7"})
		if again := w.api.Count("PATCH"); again != patches {
			t.Errorf("the same report again made %d requests", again-patches)
		}
		w.report(pod, v1.PodStatus{Phase: v1.PodSucceeded})
		if got := w.api.Pod(pod).Status; got.Phase != v1.PodSucceeded || isReady(&got) {
			t.Errorf("the API has %s, ready %t; want Succeeded, not ready", got.Phase, isReady(&got))
		}
		if _, err := w.manager.SetPodStatus(pod, v1.PodStatus{Message: "done"}); err != nil {
			t.Errorf("a report without a phase, after the end: %v", err)
		}
	})
}

// That a pod has failed is no proof: a container that was running and that the report does not mention
// could still run, and neither its end nor the phase is sent.
func TestACompletedReportDoesNotProveThatContainersEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.CompleteReports = true }).runWith("web", restartNever)
		w.report(pod, running(pod, true))
		_, err := w.manager.SetPodStatus(pod, evictedOnly)
		if _, withheld := errors.AsType[*WithheldError](err); !withheld {
			t.Errorf("the report returned %v, want a WithheldError", err)
		}
		synctest.Wait()
		if got := w.api.Pod(pod).Status; got.Phase != v1.PodRunning || got.ContainerStatuses[0].State.Running == nil {
			t.Errorf("the API has %s with container %+v while that could run", got.Phase, got.ContainerStatuses[0].State)
		}
		must(w.manager.TerminatePod(pod))
		time.Sleep(time.Minute)
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodFailed {
			t.Errorf("the API has %s after the end, want Failed", got)
		}
	})
}
