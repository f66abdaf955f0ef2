package status

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/statustest"
)

// Hundreds of pods that the server refuses for a while, or does not answer for, delay the loss of readiness of another
// pod by little, whether it was reported before, among or after theirs.
func TestFaultOfManyPods_DelaysOthersLittle(t *testing.T) {
	const many = 300
	for _, c := range []struct {
		story  string
		fault  error
		within time.Duration
	}{
		{"429, a pause of 1 s", statustest.Throttled(1), 5 * time.Second},
		{"429, a pause of 5 s", statustest.Throttled(5), 11 * time.Second},
		{"429, a pause of 30 s", statustest.Throttled(30), 11 * time.Second},
		{"no answer", statustest.ErrHang, 31 * time.Second},
	} {
		for _, position := range []int{0, many} {
			t.Run(fmt.Sprint(c.story, ", reported as number ", position), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					pods := readyPods(w, many+1)
					good := pods[position]
					w.api.SetLatency(5 * time.Millisecond)
					w.api.SetFault(func(_ context.Context, s statustest.Request) error {
						if strings.HasSuffix(s.Name, "/"+good.Name) || s.PodName() == "" {
							return nil
						}
						return c.fault
					})
					for _, pod := range pods {
						w.set(pod, running(pod, false))
					}
					pass(c.within)
					if isReady(&w.api.Pod(good).Status) {
						t.Errorf("the pod is still ready in the API %v after its report: %+v", c.within, pendingOf(w, good))
					}
				})
			})
		}
	}
}

func pendingOf(w *world, pod *v1.Pod) (of []Pending) {
	for _, p := range w.manager.Pending() {
		if p.UID == pod.UID {
			of = append(of, p)
		}
	}
	return of
}
