package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/statustest"
)

// What the API server makes of a status is its decision, and no fight: a field that it does
// not know, a gate that is off, a webhook. It costs little for as long as it lasts, is not called
// delivered, and ends within a minute of its cause.
func TestWhatTheServerMakesOfAStatusIsSettled(t *testing.T) {
	for name, c := range map[string]struct {
		mutate   func(*v1.Pod)
		requests int // for five changes
	}{
		"a scalar": {func(p *v1.Pod) { p.Status.Message = "theirs" }, 5},
		"a field of the containers": {func(p *v1.Pod) {
			for i := range p.Status.ContainerStatuses {
				p.Status.ContainerStatuses[i].Image = "theirs"
			}
		}, 5},
		"a scalar, otherwise each time": {func(p *v1.Pod) { p.Status.Message = fmt.Sprint("theirs ", time.Now().UnixNano()) }, 5},
		"a condition": {func(p *v1.Pod) {
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].Message = "theirs"
			}
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := newWorld(t).runWith("web")
				w.api.SetWebhook(c.mutate)
				for i := range 5 {
					status := running(pod, i%2 == 0)
					status.Message = fmt.Sprint("change ", i)
					w.set(pod, status)
					time.Sleep(20 * time.Second)
				}
				synctest.Wait()
				if got := len(w.api.Log()); got > c.requests {
					t.Errorf("%d requests for five changes, want %d", got, c.requests)
				}
				w.api.ForgetRequests()
				w.api.Change(pod, func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} }) // not about the status
				pass(time.Hour)
				if got := len(w.api.Log()); got < 30 || got > 100 {
					t.Errorf("%d requests in an hour, want about one a minute for the node", got)
				}
				if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitOverruled.String() || pending[0].NextTry.IsZero() {
					t.Errorf("pending is %+v, want what the server stores otherwise", pending)
				}
				if err := w.manager.Flush(t.Context()); err == nil {
					t.Error("Flush calls delivered what the API does not have")
				}
				if fights := w.manager.Fights(); len(fights) > 0 {
					t.Errorf("fights: %+v", fights)
				}
				w.api.SetWebhook(nil)
				pass(time.Minute)
				w.wantAgreement(pod)
				w.wantNothingPending()
				if err := w.manager.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				w.api.ForgetRequests()
				time.Sleep(time.Hour)
				w.wantLog("settled")
			})
		})
	}
}

// A phase that is withheld while the server overrules something else is sent when it may be.
func TestDecisionDoesNotHoldAWithheldPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := newWorld(t, func(o *Options) { o.Safety = g }).runWith("web", restartNever)
		w.api.SetWebhook(func(p *v1.Pod) { p.Status.HostIP, p.Status.HostIPs = "", nil })
		status := ended(pod, 1)
		status.HostIP = "10.1.0.1"
		w.set(pod, status)
		time.Sleep(time.Minute)
		if got := w.api.Count("PATCH"); got > 3 {
			t.Errorf("%d writes in a minute of waiting, want 3 at most", got)
		}
		g.running.Store(false)
		pass(11 * time.Second)
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodFailed {
			t.Errorf("the API says %s", got)
		}
	})
}

func TestRefusedFieldsAreNamedAndTheRestIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		status := running(pod, false)
		status.QOSClass = v1.PodQOSGuaranteed // the pod's is BestEffort
		w.set(pod, status)
		w.wantLog("refused, and sent without", "PATCH ns/web", "PATCH ns/web")
		pending := w.manager.Pending()
		if len(pending) != 1 || !slices.Equal(pending[0].Refused, []string{"status.qosClass"}) || pending[0].Err == nil || pending[0].Version != pending[0].Accepted {
			t.Errorf("pending is %+v, want the refused field", pending)
		}
		if err := w.manager.Flush(t.Context()); err != nil {
			t.Errorf("Flush waits for what is refused: %v", err)
		}
		for i := range 4 { // changes cost one request each
			status := running(pod, i%2 == 0)
			status.QOSClass = v1.PodQOSGuaranteed
			w.set(pod, status)
			w.wantLog("a change", "PATCH ns/web")
			w.wantReady(pod, i%2 == 0)
		}
		if got := w.counter("statusd_pod_status_refused_fields_total"); got != 1 {
			t.Errorf("%v refused fields counted, want 1", got)
		}
		pass(30 * time.Minute)
		if got := w.api.Count("PATCH"); got < 30 || got > 45 {
			t.Errorf("%d tries in half an hour, want one each 40 to 50 s", got)
		}
		w.api.ForgetRequests()
		w.set(pod, running(pod, true)) // the reporter no longer says it
		w.wantLog("at once, and in full", "PATCH ns/web")
		w.wantNothingPending()
	})
}

func TestRefusedFieldsOfManyKinds(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*v1.PodStatus)
		want  []string
	}{
		"podIPs":              {func(s *v1.PodStatus) { s.PodIP, s.PodIPs = "nonsense", nil }, []string{"status.podIPs", "status.podIP"}},
		"two of a family":     {func(s *v1.PodStatus) { s.PodIPs = []v1.PodIP{{IP: "10.0.0.1"}, {IP: "10.0.0.2"}} }, []string{"status.podIPs", "status.podIP"}},
		"nominated node name": {func(s *v1.PodStatus) { s.NominatedNodeName = "other" }, []string{"status.nominatedNodeName"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := newWorld(t).runWith("web")
				status := running(pod, true)
				c.spoil(&status)
				w.report(pod, status)
				w.wantReady(pod, true)
				if pending := w.manager.Pending(); len(pending) != 1 || !slices.Equal(pending[0].Refused, c.want) {
					t.Errorf("pending is %+v, want %v", pending, c.want)
				}
			})
		})
	}
}

// A refused condition is left out alone.
func TestRefusedConditionIsLeftOutAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if s.Verb == "PATCH" && slices.Contains([]byte(s.Body), '!') {
				return statustest.Invalid(s, field.Invalid(field.NewPath("status", "conditions").Index(1).Child("reason"), "!", "no exclamations"))
			}
			return nil
		})
		status := running(pod, true)
		status.Conditions[1].Reason = "!"
		w.report(pod, status)
		w.wantReady(pod, true)
		want := "status.conditions[" + string(status.Conditions[1].Type) + "]"
		if pending := w.manager.Pending(); len(pending) != 1 || !slices.Equal(pending[0].Refused, []string{want}) {
			t.Errorf("pending is %+v, want %s", pending, want)
		}
	})
}

// A refusal that names nothing that could be left out is an error as any other.
func TestRefusalWithoutAFieldIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if s.Verb == "PATCH" {
				return statustest.Invalid(s, field.Invalid(field.NewPath("status", "phase"), "Running", "not today"))
			}
			return nil
		})
		w.set(pod, running(pod, true))
		w.wantLog("refused", "PATCH ns/web")
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Err == nil || pending[0].Accepted != 0 {
			t.Errorf("pending is %+v", pending)
		}
		w.api.SetFault(nil)
		time.Sleep(time.Minute)
		w.wantAgreement(pod)
	})
}

// Statuses that no pod can have are refused where they are reported, with the field.
func TestStatusThatNoPodCanHaveIsRefused(t *testing.T) {
	container := func(name string) v1.ContainerStatus { return v1.ContainerStatus{Name: name} }
	for want, spoil := range map[string]func(*v1.PodStatus){
		"status.phase":                             func(s *v1.PodStatus) { s.Phase = "Dreaming" },
		"status.conditions[0].type":                func(s *v1.PodStatus) { s.Conditions[0].Type = "" },
		"status.podIPs[1].ip":                      func(s *v1.PodStatus) { s.PodIPs = append(s.PodIPs, v1.PodIP{}) },
		"status.hostIPs[0].ip":                     func(s *v1.PodStatus) { s.HostIPs = []v1.HostIP{{}} },
		"status.containerStatuses[0].name":         func(s *v1.PodStatus) { s.ContainerStatuses[0].Name = "" },
		"status.containerStatuses[1].name":         func(s *v1.PodStatus) { s.ContainerStatuses = append(s.ContainerStatuses, s.ContainerStatuses[0]) },
		"status.containerStatuses[0].state":        func(s *v1.PodStatus) { s.ContainerStatuses[0].State.Waiting = &v1.ContainerStateWaiting{} },
		"status.containerStatuses[0].restartCount": func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount = -1 },
		"status.message":                           func(s *v1.PodStatus) { s.Message = strings.Repeat("x", longestText+1) },
		"status.conditions[1].message":             func(s *v1.PodStatus) { s.Conditions[1].Message = strings.Repeat("x", longestText+1) },
		"status.containerStatuses[0].state.waiting.message": func(s *v1.PodStatus) {
			s.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Message: strings.Repeat("x", longestText+1)}}
		},
		"status.containerStatuses[0].lastState": func(s *v1.PodStatus) {
			s.ContainerStatuses[0].LastTerminationState = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}, Terminated: &v1.ContainerStateTerminated{}}
		},
		"status.initContainerStatuses[1].name":      func(s *v1.PodStatus) { s.InitContainerStatuses = []v1.ContainerStatus{container("i"), container("")} },
		"status.ephemeralContainerStatuses[0].name": func(s *v1.PodStatus) { s.EphemeralContainerStatuses = []v1.ContainerStatus{container("")} },
	} {
		t.Run(want, func(t *testing.T) {
			pod := newPod("web")
			m := standalone(t, pod)
			status := running(pod, true)
			spoil(&status)
			changed, err := m.SetPodStatus(pod, status)
			invalid := &InvalidStatusError{}
			if changed || !errors.As(err, &invalid) || invalid.Field != want {
				t.Errorf("got %v, %v; want a refusal of %s", changed, err, want)
			}
			if _, ok := m.GetPodStatus(pod.UID); ok {
				t.Error("it was stored")
			}
			good := running(pod, true)
			if _, err := m.SetPodStatus(pod, good); err != nil {
				t.Fatal(err)
			}
			if _, err := m.UpdatePodStatus(pod.UID, spoil); !errors.As(err, &invalid) {
				t.Errorf("UpdatePodStatus: %v, want a refusal", err)
			}
		})
	}
}

// What a kubelet may report is not refused.
func TestPartialStatusesAreTaken(t *testing.T) {
	for name, partial := range map[string]v1.PodStatus{
		"nothing at all": {},
		"a message":      {Message: "hello"},
		"a container that the spec does not name": {Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "stray"}}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("web")
			if _, err := standalone(t, pod).SetPodStatus(pod, partial); err != nil {
				t.Error(err)
			}
		})
	}
}
