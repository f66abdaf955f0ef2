package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/statustest"
)

// Answers to a write that is too large.
var (
	tooLargeForEtcd   = apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
	tooLargeForServer = apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	tooLargeForProxy  = apierrors.NewGenericServerResponse(413, "PATCH", podResource, "web", "<html>413</html>", 0, true)
)

// atMost is a server, or a proxy before it, that takes no write of more bytes.
func atMost(bytes int, refusal error) statustest.Fault {
	return func(_ context.Context, r statustest.Request) error {
		if r.Verb == "PATCH" && len(r.Body) > bytes {
			return refusal
		}
		return nil
	}
}

// A status that etcd cannot store, or that the server or a proxy does not take, is sent without its largest part.
func TestStatusThatIsTooLarge_IsSentWithoutItsLargestPart(t *testing.T) {
	for _, refusal := range []error{tooLargeForEtcd, tooLargeForServer, tooLargeForProxy} {
		t.Run(fmt.Sprint(refusal), func(t *testing.T) { sendsWithoutItsLargestPart(t, refusal) })
	}
}

func sendsWithoutItsLargestPart(t *testing.T, refusal error) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web", func(p *v1.Pod) {
			for i := range 100 {
				p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i)})
			}
		})
		w.run()
		w.api.SetFault(atMost(100<<10, refusal))
		status := running(pod, false)
		for i := range 100 {
			status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: fmt.Sprint("c", i),
				State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "Wait", Message: strings.Repeat("x", 2<<10)}}})
		}
		status.Message = strings.Repeat("y", 150<<10)
		w.report(pod, status)
		got := w.api.Pod(pod).Status
		if got.Phase != v1.PodRunning || got.PodIP == "" || len(got.ContainerStatuses) != 0 || got.Message != "" {
			t.Errorf("the API says %s, %q, %d containers, %d bytes of message; want all but the two large parts",
				got.Phase, got.PodIP, len(got.ContainerStatuses), len(got.Message))
		}
		pending := w.manager.Pending()
		if len(pending) != 1 || len(pending[0].Refused) != 2 || !errors.Is(pending[0].Err, refusal) {
			t.Errorf("Pending says %+v", pending)
		}
		w.api.ForgetRequests()
		time.Sleep(time.Hour)
		if got := w.api.Count("PATCH"); got > 60 {
			t.Errorf("%d tries in an hour", got)
		}
	})
}

// A pod of which nothing can be stored, for example because its annotations are too large, is tried each
// 30 s after some minutes, as one that the server fails with.
func TestPodThatIsTooLarge_BacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.SetFault(atMost(0, tooLargeForEtcd))
		w.set(pod, running(pod, true))
		time.Sleep(graveFor + time.Minute)
		w.api.ForgetRequests()
		time.Sleep(time.Hour)
		if got := w.api.Count("PATCH"); got == 0 || got > 3600/24+1 {
			t.Errorf("%d tries in an hour, want one each 24 to 30 s", got)
		}
	})
}

// A proxy that answers 413 for one pod, whatever its size, does not delay its loss of readiness for longer than another refusal.
func TestPodThatAloneIsTooLarge_IsTriedEveryTenSeconds(t *testing.T) {
	for name, refusal := range map[string]error{
		"413 of a proxy":  tooLargeForProxy,
		"413 of a server": tooLargeForServer,
		"500 of etcd":     tooLargeForEtcd,
		"500":             apierrors.NewInternalError(errors.New("boom")),
		"422":             apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "web", nil),
		"400":             apierrors.NewBadRequest("no"),
		"404":             apierrors.NewNotFound(podResource, "web"),
		"405":             apierrors.NewMethodNotSupported(podResource, "patch"),
		"409":             statustest.DeniedByWebhook(409, "Conflict"),
		"415":             apierrors.NewGenericServerResponse(415, "PATCH", podResource, "web", "no", 0, false),
		"503 of a proxy":  apierrors.NewGenericServerResponse(503, "PATCH", podResource, "web", "<html>", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // the back-off is random
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					pods := readyPods(w, 2)
					w.api.SetFault(func(_ context.Context, r statustest.Request) error {
						if r.Verb == "PATCH" && r.PodName() == pods[0].Name {
							return refusal
						}
						return nil
					})
					lose(w, pods[0])
					for i := range 5 * 60 { // the server serves the other pod
						w.set(pods[1], running(pods[1], i%2 == 0))
						pass(time.Second)
					}
					w.api.SetFault(nil)
					pass(graveWait + time.Second)
					w.wantReady(pods[0], false)
					w.wantNothingPending()
				})
			}
		})
	}
}
