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

// atMost is a server whose etcd takes no write of more bytes.
func atMost(bytes int) statustest.Fault {
	return func(_ context.Context, r statustest.Request) error {
		if r.Verb == "PATCH" && len(r.Body) > bytes {
			return apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
		}
		return nil
	}
}

// A status that etcd cannot store is sent without its largest part.
func TestStatusThatIsTooLarge_IsSentWithoutItsLargestPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web", func(p *v1.Pod) {
			for i := range 100 {
				p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i)})
			}
		})
		w.run()
		w.api.SetFault(atMost(100 << 10))
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
		if len(pending) != 1 || len(pending[0].Refused) != 2 || !strings.Contains(fmt.Sprint(pending[0].Err), "too large") {
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
// 30 s, as one that the server refuses.
func TestPodThatIsTooLarge_BacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.SetFault(atMost(0))
		w.set(pod, running(pod, true))
		time.Sleep(time.Minute)
		w.api.ForgetRequests()
		time.Sleep(time.Hour)
		if got := w.api.Count("PATCH"); got == 0 || got > 3600/24+1 {
			t.Errorf("%d tries in an hour, want one each 24 to 30 s", got)
		}
	})
}
