package status

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/statustest"
)

// holdPatches makes the API server hold the PATCHes that arrive, without an answer, until release. It then carries
// them out, although the client has given them up.
func holdPatches(w *world) (release func() []error) {
	var held []statustest.Request
	w.api.SetFault(func(_ context.Context, r statustest.Request) error {
		if r.Verb != "PATCH" {
			return nil
		}
		held = append(held, r)
		return statustest.ErrHang
	})
	return func() (results []error) {
		w.api.SetFault(nil)
		for _, r := range held {
			_, err := w.api.PatchStatus(context.Background(), "ns", r.PodName(), []byte(r.Body))
			results = append(results, err)
		}
		return results
	}
}

// elsewhere is a status with another address. Unlike readiness it has no time.
func elsewhere(pod *v1.Pod) v1.PodStatus {
	status := running(pod, false)
	status.PodIP, status.PodIPs = "10.9.9.9", []v1.PodIP{{IP: "10.9.9.9"}}
	return status
}

// A write that the manager has given up may be carried out after a newer one was stored. It must not set the API back, not even for
// the moment until the watch shows it: the readiness or the containers of a status have no other guard.
func TestRequestThatOutlivesItsClient_ChangesNothing(t *testing.T) {
	for name, older := range map[string]func(*v1.Pod) v1.PodStatus{
		"readiness":  func(pod *v1.Pod) v1.PodStatus { return running(pod, true) },
		"an address": elsewhere,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := newWorld(t).runWith("web")
				w.set(pod, running(pod, false))
				synctest.Wait()
				carryOut := holdPatches(w)
				w.set(pod, older(pod))
				time.Sleep(w.manager.opts.RequestTimeout + time.Millisecond) // it is given up
				w.api.SetFault(nil)
				lost := running(pod, false)
				lost.Message = "newer"
				w.set(pod, lost)
				time.Sleep(time.Minute)
				w.wantAgreement(pod)
				w.wantNothingPending()
				w.api.OnStore(nil) // the watch hangs
				for _, err := range carryOut() {
					if !apierrors.IsConflict(err) {
						t.Errorf("the API server answers the late request with %v, want a conflict", err)
					}
				}
				w.wantAgreement(pod)
			})
		})
	}
}

// If the status is again what the API has, there is no newer write that would make the late one fail. Until the server has
// certainly dropped the request, the status is not delivered; and if the server carries it out, the API is put right at once.
func TestRequestThatOutlivesItsClient_WithoutANewerWrite(t *testing.T) {
	for name, after := range map[string]time.Duration{"soon": time.Second, "late": 50 * time.Second, "never": 0} {
		for _, watch := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, watch %v", name, watch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, pod := newWorld(t).runWith("web")
					w.set(pod, running(pod, false))
					synctest.Wait()
					carryOut := holdPatches(w)
					w.set(pod, elsewhere(pod))
					time.Sleep(w.manager.opts.RequestTimeout - time.Second)
					w.set(pod, running(pod, false))
					time.Sleep(time.Second)
					w.api.SetFault(nil)
					w.api.ForgetRequests()
					if !watch {
						w.api.OnStore(nil)
					}
					flushed, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					if err := w.manager.Flush(flushed); err == nil {
						t.Error("Flush calls delivered what a late request may replace")
					}
					if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitUnanswered.String() || pending[0].Accepted == pending[0].Version {
						t.Errorf("pending is %+v, want a pod that waits for a late request", pending)
					}
					if after > 0 {
						time.Sleep(after - 30*time.Second)
						if err := carryOut()[0]; err != nil {
							t.Fatal(err)
						}
						if watch {
							pass(time.Second)
							w.wantAgreement(pod)
						}
					}
					pass(lateFor)
					w.wantAgreement(pod)
					w.wantNothingPending()
					if got := w.api.Log(); len(got) > 4 { // the late one, a read, a write, and what the read costs if it comes first
						t.Errorf("requests %s", list(got))
					}
				})
			})
		}
	}
}
