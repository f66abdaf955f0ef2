package worker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

// Each volume that cannot be set up has an event with the kubelet's words, and the pod waits.
func TestAPodWaitsForItsVolumes(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Fail("StartPod", fmt.Errorf("start pod: %w", errors.Join(
			&runtime.MountError{Volume: "settings", Err: errors.New(`configmap "settings" not found`)},
			&runtime.MountError{Volume: "keys", Err: errors.New(`secret "keys" not found`)},
		)))
		pod := newPod("web")
		n.update(pod)
		n.wantState(pod, "main", "at first", "Waiting ContainerCreating")
		n.sleep(10 * time.Second)
		n.wantState(pod, "main", "after 10s", "Running")
		for _, want := range []string{
			`FailedMount: MountVolume.SetUp failed for volume "settings" : configmap "settings" not found`,
			`FailedMount: MountVolume.SetUp failed for volume "keys" : secret "keys" not found`,
		} {
			if !n.events.has(want) {
				t.Errorf("events: got %q, want %q", n.events.all, want)
			}
		}
	})
}

// People and programs match on the message of a container that waits: it has no words of ours.
func TestAStartThatFailsSaysWhyAndNothingElse(t *testing.T) {
	story(t, func(n *node) {
		missing := &runtime.StartError{Reason: runtime.WaitingConfigError, Err: errors.New(`configmap "x" not found`)}
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StartError: fmt.Errorf("fake: start container main: %w", missing)}}))
		pod := newPod("web")
		n.update(pod)
		status, _ := n.status.GetPodStatus(pod.UID)
		waiting := status.ContainerStatuses[0].State.Waiting
		if waiting == nil || waiting.Reason != "CreateContainerConfigError" || waiting.Message != `configmap "x" not found` {
			t.Errorf("got %+v, want CreateContainerConfigError with the bare reason", waiting)
		}
		if !n.events.has(`main Failed: Error: configmap "x" not found`) {
			t.Errorf("events: got %q", n.events.all)
		}
	})
}

// A volume is often missing for a moment only: the API server does not know yet that the pod is on
// this node, and refuses its token. The tries get further apart, up to ten seconds.
func TestTheFirstTriesToMakeAPlaceAreCloseTogether(t *testing.T) {
	story(t, func(n *node) {
		refused := &runtime.MountError{Volume: "token", Err: errors.New("forbidden")}
		n.rt.Fail("StartPod", refused, refused, refused, refused, refused, refused, refused)
		n.update(newPod("web"))
		for i, pause := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
			if got := len(n.callsOf("StartPod")); got != i+1 {
				t.Fatalf("%d tries before pause %d (%s), want %d", got, i, pause, i+1)
			}
			n.sleep(pause - time.Millisecond)
			if got := len(n.callsOf("StartPod")); got != i+1 {
				t.Errorf("%d tries just before the end of pause %d (%s), want %d", got, i, pause, i+1)
			}
			n.sleep(time.Millisecond)
		}
		n.wantStarts("in the end", "main/0")
	})
}

// The authorizer of the API server learns a moment later than this node that a pod is here. That is no failure of the pod.
func TestAnAuthorizerThatIsBehind_IsAskedAgainInSilence(t *testing.T) {
	behind := fmt.Errorf("start pod: %w", &runtime.MountError{Volume: "token", Err: fmt.Errorf("token: %w",
		apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "default", errors.New("pod scheduled on a different node")))})
	for refusals, wantEvents := range []int{0, 0, 1, 2} {
		story(t, func(n *node) {
			for range refusals {
				n.rt.Fail("StartPod", behind)
			}
			pod := newPod("web")
			n.update(pod)
			n.sleep(10 * time.Second)
			n.wantState(pod, "main", "in the end", "Running")
			events := 0
			for _, event := range n.events.all {
				if strings.HasPrefix(event, "FailedMount") {
					events++
				}
			}
			if events != wantEvents {
				t.Errorf("%d refusals: %d events, want %d: %q", refusals, events, wantEvents, n.events.all)
			}
		})
	}
}
