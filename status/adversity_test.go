package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/statustest"
)

// What bad times may cost. A kubelet looks at every pod each 10 s, so that is what a pod
// behind a server that is well again would wait at most.
const (
	// healedWithin is how long after the end of an outage the API may still say something
	// else than the node: a round of the kubelet, and some time to send what has piled up.
	healedWithin = 15 * time.Second
	// restoredWithin is the same after the server's data were restored from a backup. What
	// the node holds is then newer than what the server has, and it takes a while to be sure
	// that this is not only a watch that lags behind.
	restoredWithin = time.Minute
)

// A webhook that is down, or denies for good, must cost the server little, and no other pod
// anything: the tries are further and further apart.
func TestADeletionThatFailsIsRetriedLessAndLess(t *testing.T) {
	for name, answer := range map[string]error{
		"error":       apierrors.NewInternalError(errors.New("boom")),
		"denied":      statustest.DeniedByWebhook(403, metav1.StatusReasonForbidden),
		"conflict":    statustest.DeniedByWebhook(409, metav1.StatusReasonConflict),
		"unreachable": statustest.ErrRefused,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pod, other := w.create("web", restartNever, deleting), w.create("other")
				w.run()
				w.api.SetFault(refusing("DELETE", answer))
				w.set(pod, ended(pod, 0))
				must(w.manager.TerminatePod(pod))
				for i := range 600 { // other pods are well, which says nothing about this one
					time.Sleep(time.Second)
					w.set(other, running(other, i%2 == 0))
				}
				synctest.Wait()
				// 250 ms, doubled up to 30 s: about 28. Successes of others may look like the end of an
				// outage, and be worth a try. A kubelet makes one each 10 s.
				if got := w.api.Count("DELETE"); got < 5 || got > 60 {
					t.Errorf("%d deletes in 10 minutes, want about 28", got)
				}
				w.api.SetFault(nil)
				pass(31 * time.Second)
				if w.api.Pod(pod) != nil {
					t.Error("the pod is still there after the webhook gave in")
				}
			})
		})
	}
}

// After a restore the server's resource versions are lower than those the node has seen.
func TestARestoredBackupIsPutRight(t *testing.T) {
	for _, ready := range []bool{true, false} {
		for _, seen := range []bool{true, false} {
			t.Run(fmt.Sprintf("ready=%v/seen=%v", ready, seen), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, pod := newWorld(t).runWith("web")
					w.report(pod, running(pod, !ready))
					backup := w.api.Backup()
					w.set(pod, running(pod, ready))
					time.Sleep(time.Minute) // all is quiet
					for range 20 {
						w.api.Change(pod, func(p *v1.Pod) { p.Annotations = map[string]string{"now": time.Now().String()} })
						time.Sleep(time.Second)
					}
					if !seen {
						w.api.OnStore(nil) // the watch has not begun again yet
					}
					w.api.Restore(backup)
					w.api.OnStore(w.deliver)
					pass(restoredWithin)
					if seen {
						w.wantReady(pod, ready)
					}
					// What equals the lost state is news to the server.
					w.report(pod, running(pod, !ready))
					w.set(pod, running(pod, ready))
					pass(restoredWithin)
					w.wantReady(pod, ready)
					w.wantNothingPending()
					if fights := w.manager.Fights(); len(fights) > 0 {
						t.Errorf("fights: %+v", fights)
					}
				})
			})
		}
	}
}

func (w *world) wantReady(pod *v1.Pod, want bool) {
	w.Helper()
	if got := w.api.Pod(pod); got == nil || isReady(&got.Status) != want {
		w.Errorf("ready in the API: %v, want %v", got != nil && isReady(&got.Status), want)
	}
}

// Every user may annotate a pod, also with what a static pod carries.
func TestAnAnnotationDoesNotMakeAPodOfTheAPIStatic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web", restartNever, func(p *v1.Pod) {
			p.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		})
		w.run()
		w.set(pod, running(pod, true))
		w.wantLog("a pod as any other", "PATCH ns/web")
		w.wantReady(pod, true)
		w.api.Change(pod, deleting)
		w.set(pod, ended(pod, 0))
		must(w.manager.TerminatePod(pod))
		time.Sleep(time.Second)
		w.wantLog("ended and deleted", "PATCH ns/web", "DELETE ns/web")
	})
}

// A static pod has the same UID after each restart, and its end is not for good.
func TestAStaticPodThatHasEndedMayRunAfterARestart(t *testing.T) {
	for _, joined := range []bool{true, false} {
		t.Run(fmt.Sprintf("joined=%v", joined), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := journal.NewMemory()
				standalone := func(o *Options) {
					if !joined {
						o.Client = nil
					}
				}
				first := newWorld(t, withJournal(memory), standalone)
				static, mirror := first.createStatic("etcd")
				first.run()
				first.set(static, rejected())
				must(first.manager.TerminatePod(static))
				time.Sleep(time.Second)
				first.stop()

				second := newWorld(t, withJournal(memory), standalone)
				second.table.Set(static)
				second.api.Restore(first.api.Backup())
				second.run()
				second.set(static, running(static, true))
				pass(healedWithin)
				if got, _ := second.manager.GetPodStatus(static.UID); got.Phase != v1.PodRunning {
					t.Errorf("the node says %s/%s of a static pod that runs", got.Phase, got.Reason)
				}
				if got := second.api.Pod(mirror); joined && (got.Status.Phase != v1.PodRunning || got.Status.Reason != "" || !isReady(&got.Status)) {
					t.Errorf("the mirror says %s/%s, ready %v", got.Status.Phase, got.Status.Reason, isReady(&got.Status))
				}
			})
		})
	}
}

// rejected is the status of a pod for which the node has no room.
func rejected() v1.PodStatus {
	return v1.PodStatus{Phase: v1.PodFailed, Reason: "OutOfcpu", Message: "no room"}
}

// A load balancer that has lost its server answers 404. That is no word on any pod.
func TestANotFoundThatIsNotTheServersLosesNothing(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := journal.NewMemory()
				w := newWorld(t, withJournal(memory))
				var jobs []*v1.Pod
				for i := range 5 {
					jobs = append(jobs, w.create(fmt.Sprint("job-", i), restartNever))
				}
				web := w.create("web")
				w.run()
				w.set(web, running(web, true))
				synctest.Wait()
				w.api.SetFault(statustest.LoadBalancerWithoutBackend)
				for _, job := range jobs {
					w.set(job, ended(job, 3))
				}
				w.set(web, running(web, false))
				pass(10 * time.Minute)
				if left := memory.Finals(); len(left) != len(jobs) {
					t.Errorf("the journal has %d ends, want all %d: the server has none of them", len(left), len(jobs))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := w.manager.Flush(ctx); err == nil {
					t.Error("Flush says that all is delivered")
				}
				if got := len(w.manager.Pending()); got != len(jobs)+1 {
					t.Errorf("%d pods are pending, want %d", got, len(jobs)+1)
				}
				if restarted {
					w = w.restart(withJournal(memory))
				} else {
					w.api.SetFault(nil)
				}
				pass(healedWithin)
				for _, job := range jobs {
					if got := w.api.Pod(job).Status; got.Phase != v1.PodFailed || got.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
						t.Errorf("%s is %s in the API", job.Name, got.Phase)
					}
				}
				if !restarted {
					w.wantReady(web, false)
				}
				w.wantNothingPending()
			})
		})
	}
}

// restart ends the process and starts another one, with a server that is well.
func (w *world) restart(change ...func(*Options)) *world {
	w.stop()
	next := newWorld(w.T, change...)
	next.api.Restore(w.api.Backup())
	next.run()
	return next
}

// Agents of others report what they know, and the server completes it.
func TestAStatusThatTheServerCompletesCostsOneRequest(t *testing.T) {
	two := []v1.PodIP{{IP: "10.0.0.7"}, {IP: "fd00::7"}}
	for name, partial := range map[string]func(*v1.PodStatus){
		"podIP alone":           func(s *v1.PodStatus) { s.PodIPs = nil },
		"podIPs alone":          func(s *v1.PodStatus) { s.PodIP, s.PodIPs = "", two },
		"podIP and other ones":  func(s *v1.PodStatus) { s.PodIP, s.PodIPs = "10.0.0.9", two },
		"no address":            func(s *v1.PodStatus) { s.PodIP, s.PodIPs = "", nil },
		"hostIP alone":          func(s *v1.PodStatus) { s.HostIP = "10.1.0.1" },
		"no conditions":         func(s *v1.PodStatus) { s.Conditions = nil },
		"no container statuses": func(s *v1.PodStatus) { s.ContainerStatuses = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := newWorld(t).runWith("web")
				for i := range 5 {
					status := running(pod, i%2 == 0)
					status.Message = fmt.Sprint("change ", i)
					partial(&status)
					w.set(pod, status)
					time.Sleep(time.Minute)
				}
				synctest.Wait()
				if got := w.api.Count("PATCH"); got != 5 {
					t.Errorf("%d patches for five changes", got)
				}
				if fights := w.manager.Fights(); len(fights) > 0 {
					t.Errorf("fights: %+v", fights)
				}
				time.Sleep(time.Hour)
				if got := w.api.Log(); len(got) != 5 {
					t.Errorf("requests in an hour without a change: %v", got[5:])
				}
			})
		})
	}
}

// After a long outage each pod waits for its own next try. A server that is well again must
// not be left waiting for that, least of all with a withdrawal.
func TestAWithdrawalAfterAnOutageArrivesSoon(t *testing.T) {
	for _, pods := range []int{1, 2, 100} {
		t.Run(fmt.Sprint(pods, " pods"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var all []*v1.Pod
				for i := range pods {
					all = append(all, w.create(fmt.Sprint("pod-", i)))
				}
				w.run()
				for _, pod := range all {
					w.set(pod, running(pod, true))
				}
				synctest.Wait()
				outage := w.outage(10 * time.Minute)
				for _, pod := range all {
					status := running(pod, true)
					status.Message = "a change in bad times"
					w.set(pod, status)
				}
				<-outage
				w.set(all[0], running(all[0], false))
				begin := time.Now()
				pass(time.Minute)
				slowest := time.Duration(0)
				for _, s := range w.api.Requests() {
					if s.Err == nil && s.Verb == "PATCH" && s.At.After(begin) {
						slowest = max(slowest, s.At.Sub(begin))
					}
				}
				if slowest > healedWithin {
					t.Errorf("the last pod was heard %s after the outage, want %s at most", slowest, healedWithin)
				}
				if got := w.api.Count("PATCH"); got < pods {
					t.Errorf("%d patches", got)
				}
				for _, pod := range all {
					w.wantReady(pod, pod != all[0])
				}
			})
		})
	}
}

// outage makes the server unreachable for a time, and until the first try after it, so that
// this pod has its longest wait still before it. The channel is closed at the end.
func (w *world) outage(least time.Duration) <-chan struct{} {
	begin, over := time.Now(), make(chan struct{})
	var once sync.Once
	w.api.SetFault(func(context.Context, statustest.Request) error {
		select {
		case <-over:
			return nil
		default:
		}
		if time.Since(begin) >= least {
			once.Do(func() { close(over) })
		}
		return statustest.ErrRefused
	})
	return over
}

// A server in maintenance asks for a pause for a day. Nothing holds it to that.
func TestRetryAfterIsNotADaysSilence(t *testing.T) {
	for name, answer := range map[string]error{
		"429": statustest.Throttled(86400),
		"503": statustest.Unavailable(statustest.Request{Verb: "PATCH", Name: "ns/web"}, 86400),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pod, other := w.create("web"), w.create("other")
				w.run()
				w.set(other, running(other, true))
				synctest.Wait()
				w.api.SetFault(func(context.Context, statustest.Request) error { return answer })
				w.set(pod, running(pod, true))
				time.Sleep(time.Second)
				w.api.SetFault(nil)
				w.set(other, running(other, false))
				pass(time.Minute)
				w.wantReady(other, false)
				w.wantReady(pod, true)
			})
		})
	}
}

// A pod of the name lives on another node now. The server denies to talk about it, forever.
func TestAPodThatWasRecreatedOnAnotherNodeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.api.SetNode("node")
		pod := w.create("web")
		w.run()
		w.report(pod, running(pod, true))
		w.api.OnStore(nil)
		w.api.Remove("ns", "web")
		w.api.Put(newPod("web", func(p *v1.Pod) { p.UID, p.Spec.NodeName = "another", "elsewhere" }))
		w.set(pod, running(pod, false))
		pass(time.Hour)
		if got := w.api.Count("PATCH"); got > 20 {
			t.Errorf("%d patches in an hour to a pod of another node", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.manager.Flush(ctx); err != nil {
			t.Errorf("Flush waits for a pod that is gone: %v", err)
		}
	})
}

// A server that has just started denies to know the node's pods. None of them is gone.
func TestAServerThatHasJustStartedMakesNoPodGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newWorld(t, withJournal(memory), func(o *Options) { o.AlwaysRead = true })
		w.api.SetNode("node")
		job, done := w.create("job", restartNever), w.create("done", restartNever, deleting)
		w.run()
		w.set(done, ended(done, 0))
		synctest.Wait()
		w.api.SetFault(statustest.ServerJustStarted)
		w.set(job, ended(job, 3))
		must(w.manager.TerminatePod(done))
		pass(time.Minute)
		if _, ok := memory.Finals()[job.UID]; !ok && w.api.Pod(job).Status.Phase != v1.PodFailed {
			t.Error("the end of the pod is neither in the journal nor in the API")
		}
		w.api.SetFault(nil)
		pass(healedWithin)
		if got := w.api.Pod(job).Status.Phase; got != v1.PodFailed {
			t.Errorf("the API says %s of a pod that has failed", got)
		}
		time.Sleep(31*time.Second - healedWithin) // the longest back-off: no endpoint waits for a delete
		synctest.Wait()
		if w.api.Pod(done) != nil {
			t.Error("the finished pod is still there")
		}
	})
}

// One field that the server refuses must not keep the rest from it.
func TestARefusedFieldDoesNotHoldUpTheRest(t *testing.T) {
	for name, spoil := range map[string]func(*v1.PodStatus){
		"qosClass": func(s *v1.PodStatus) { s.QOSClass = v1.PodQOSGuaranteed },
		"hostIPs":  func(s *v1.PodStatus) { s.HostIP, s.HostIPs = "", []v1.HostIP{{IP: "10.1.0.1"}} },
		"podIPs":   func(s *v1.PodStatus) { s.PodIP, s.PodIPs = "nonsense", []v1.PodIP{{IP: "nonsense"}} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := newWorld(t).runWith("web")
				w.report(pod, running(pod, true))
				status := running(pod, false)
				spoil(&status)
				w.set(pod, status)
				pass(10 * time.Minute)
				w.wantReady(pod, false)
				if got := w.api.Count("PATCH"); got > 60 {
					t.Errorf("%d patches in 10 minutes", got)
				}
				if fights := w.manager.Fights(); slices.ContainsFunc(fights, func(f Fight) bool { return f.Name == "web" }) {
					t.Errorf("fights: %+v", fights)
				}
			})
		})
	}
}
