package queryapi_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

// The words of a row that has not changed are made when the row is sent, not at its last change.
func TestWatch_SentenceIsOfNow(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		node.set(running("web", func(p *view.Pod) {
			p.Facts.Status.Phase = v1.PodFailed
			p.Facts.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3, FinishedAt: metav1.Time{Time: time.Now()}}}
		}))
		first := watch(t, s, "/apis/v1/watch", "", false)
		first.take()
		first.leave()
		time.Sleep(10 * time.Minute)
		second := watch(t, s, "/apis/v1/watch", "", false)
		defer second.leave()
		for _, e := range second.take() {
			if e.kind == "pod" && !strings.Contains(e.data, "ended 10 min ago") {
				t.Errorf("got %s", e.data)
			}
		}
	})
}
