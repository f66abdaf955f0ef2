package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/statustest"
)

// An answer that lies about a pod must cost neither its status nor the journal's copy of its end.
func TestAnswersThatDoNotProveThatAPodIsGone(t *testing.T) {
	for name, script := range map[string]func(context.Context, statustest.Request) error{
		"load balancer without a backend": statustest.LoadBalancerWithoutBackend,
		"server that has just started":    statustest.ServerJustStarted,
		"everything is not found, but listed": func(_ context.Context, s statustest.Request) error {
			if s.Verb == "LIST" {
				return nil
			}
			return apierrors.NewNotFound(podResource, s.PodName())
		},
		"not found, and no list": func(_ context.Context, s statustest.Request) error {
			if s.Verb == "LIST" {
				return statustest.ErrRefused
			}
			return apierrors.NewNotFound(podResource, s.PodName())
		},
		"webhook that answers 409": func(_ context.Context, s statustest.Request) error {
			if s.Verb == "LIST" || s.Verb == "GET" {
				return nil
			}
			return statustest.DeniedByWebhook(http.StatusConflict, metav1.StatusReasonConflict)
		},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restarted ", restarted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory := journal.NewMemory()
					w := newWorld(t, withJournal(memory))
					w.api.SetNode("node")
					pod := w.create("job", restartNever, deleting)
					w.run()
					w.api.SetFault(script)
					w.set(pod, ended(pod, 3))
					must(w.manager.TerminatePod(pod))
					pass(10 * time.Minute)
					if delivered := w.api.Pod(pod).Status.Phase == v1.PodFailed; !delivered && len(memory.Finals()) != 1 {
						t.Errorf("the end is neither in the API nor in the journal")
					}
					if len(w.manager.Pending()) != 1 {
						t.Errorf("pending is %+v, want the pod", w.manager.Pending())
					}
					if restarted {
						w.stop()
						before := w.api
						w = newWorld(t, withJournal(memory))
						w.api.Restore(before.Backup())
						w.table.Set(w.api.Pod(pod))
						w.run()
					}
					w.api.SetFault(nil)
					pass(time.Minute)
					// After a restart, its worker would say again that the pod has finished.
					if got := w.api.Pod(pod); got != nil && !(restarted && got.Status.Phase == v1.PodFailed) {
						t.Errorf("a minute after the lies ended the pod is still there: %s, deleting %v", got.Status.Phase, got.DeletionTimestamp)
					}
				})
			})
		}
	}
}

// What is not the server's answer says nothing about the pod, and is not looked into.
func TestAnswerThatIsNotTheServersIsNotLookedInto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		before := w.api.Lists()
		w.api.SetFault(statustest.LoadBalancerWithoutBackend)
		w.set(pod, running(pod, true))
		w.wantLog("tried again later", "PATCH ns/web")
		if w.api.Lists() != before {
			t.Errorf("%d lists", w.api.Lists()-before)
		}
	})
}

// A pod whose name was taken by a pod of another node is answered with 403 for good.
func TestPodRecreatedOnAnotherNodeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newWorld(t, withJournal(memory))
		w.api.SetNode("node")
		finished, ends := w.create("db-0", restartNever, deleting), w.create("db-1", restartNever)
		w.run()
		w.set(finished, ended(finished, 0))
		synctest.Wait()
		w.api.OnStore(nil)
		for _, pod := range []*v1.Pod{finished, ends} {
			w.api.Remove("ns", pod.Name)
			w.api.Put(newPod(pod.Name, func(p *v1.Pod) { p.UID, p.Spec.NodeName = "fresh", "another" }))
		}
		must(w.manager.TerminatePod(finished))
		w.set(ends, ended(ends, 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.manager.Flush(ctx); err != nil {
			t.Errorf("Flush waits for pods that are another node's: %v", err)
		}
		synctest.Wait()
		if _, ok := w.manager.GetPodStatus(finished.UID); ok {
			t.Error("the finished pod is still in the cache")
		}
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitGone.String() {
			t.Errorf("pending is %+v, want the other pod held as gone", pending)
		}
		if left := memory.Finals(); len(left) != 0 {
			t.Errorf("the journal still holds %v", left)
		}
	})
}

// A denial that means what it says costs one list, and then now and then one.
func TestDenialCostsFewLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		before := w.api.Lists()
		w.api.SetFault(refusing("PATCH", statustest.DeniedByWebhook(http.StatusForbidden, metav1.StatusReasonForbidden)))
		w.set(pod, running(pod, true))
		pass(10 * time.Minute)
		if got := w.api.Lists() - before; got < 1 || got > 3 {
			t.Errorf("%d lists in ten minutes of denials", got)
		}
		if pending := w.manager.Pending(); len(pending) != 1 || !apierrors.IsForbidden(pending[0].Err) {
			t.Errorf("pending is %+v, want the denial", pending)
		}
	})
}

// front is the way to the API server: a load balancer that has a backend, or not.
type front struct {
	api  *statustest.Server
	down atomic.Bool
}

func (f *front) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil { // http.ErrAbortHandler: the connection breaks
			response, err = nil, io.ErrUnexpectedEOF
		}
	}()
	recorder := httptest.NewRecorder()
	if f.down.Load() {
		http.Error(recorder, "default backend - 404", http.StatusNotFound)
	} else {
		f.api.ServeHTTP(recorder, r)
	}
	response = recorder.Result()
	response.Request = r
	return response, nil
}

// The server is away, and what stands before it answers 404 for ten minutes. Fifty pods end
// meanwhile, and the process is killed. Through the client that everyone uses, with the
// journal on disk: all ends arrive.
func TestEndsSurviveALoadBalancerWithoutABackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		front := &front{api: statustest.New()}
		clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://127.0.0.1", QPS: -1}, &http.Client{Transport: front})
		must(err)
		client := NewClient(clientset.CoreV1(), "node")
		start := func() (*world, *journal.Durable) {
			durable, err := journal.Open(filepath.Join(dir, "journal.db"), journal.Options{NodeName: "node"})
			must(err)
			w := newWorld(t, func(o *Options) { o.Client, o.Journal = client, durable })
			w.api, w.table = front.api, pods.New()
			w.manager.opts.Pods = w.table
			w.api.OnStore(w.deliver)
			for _, pod := range w.api.Pods() {
				w.table.Set(pod)
			}
			return w, durable
		}
		w, durable := start()
		var all []*v1.Pod
		for i := range 50 {
			all = append(all, w.create(fmt.Sprintf("job-%02d", i), restartNever))
		}
		w.run()
		for _, pod := range all {
			w.set(pod, running(pod, true))
		}
		synctest.Wait()
		front.down.Store(true)
		for i, pod := range all {
			w.set(pod, ended(pod, int32(i)))
		}
		time.Sleep(3 * time.Minute)
		w.stop() // killed
		must(durable.Close())
		w, durable = start()
		w.run()
		time.Sleep(7 * time.Minute)
		if got := len(durable.Finals()); got != 50 {
			t.Errorf("the journal holds %d ends, want all 50", got)
		}
		front.down.Store(false)
		pass(time.Minute)
		for i, pod := range all {
			got := w.api.Pod(pod).Status.ContainerStatuses[0].State.Terminated
			if got == nil || got.ExitCode != int32(i) {
				t.Errorf("the end of %s is %+v", pod.Name, got)
			}
		}
		w.wantNothingPending()
		for _, pod := range all {
			w.manager.Forget(pod.UID)
		}
		if got := len(durable.Finals()); got != 0 {
			t.Errorf("the journal still holds %d ends of pods that are gone", got)
		}
		w.stop()
		must(durable.Close())
	})
}

// The limiter of the REST client, five requests per second and first come first served, would
// keep neither the order nor the budget of the manager.
func TestClientIgnoresTheLimiterOfTheRESTClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front := &front{api: statustest.New()}
		clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://127.0.0.1"}, &http.Client{Transport: front})
		must(err)
		w := newWorld(t, func(o *Options) { o.Client = NewClient(clientset.CoreV1(), "node") })
		w.api = front.api
		w.api.OnStore(w.deliver)
		var all []*v1.Pod
		for i := range 60 {
			all = append(all, w.create(fmt.Sprint("pod-", i)))
		}
		w.run()
		begin := time.Now()
		for _, pod := range all {
			w.set(pod, running(pod, true))
		}
		must(w.manager.Flush(t.Context()))
		if took := time.Since(begin); took > time.Second {
			t.Errorf("60 changes took %v of virtual time with a server that answers at once", took)
		}
	})
}

// #139020: another pod's signal must not cause a look for a pod that is gone.
func TestNotFoundIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		gone, other := w.create("gone"), w.create("other")
		w.run()
		w.api.Remove("ns", "gone")
		w.set(gone, running(gone, true))
		w.wantLog("the pod is gone: look once", "PATCH ns/gone", "GET ns/gone")
		w.set(gone, running(gone, false))
		w.wantLog("news of it: look once more", "GET ns/gone")
		for i := range 20 {
			status := running(other, true)
			status.Message = fmt.Sprint(i)
			w.set(other, status)
			status = running(gone, true)
			status.Message = fmt.Sprint(i)
			w.set(gone, status)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		for _, s := range w.api.Requests() {
			if s.Name == "ns/gone" {
				t.Errorf("%s %v after it was found gone", s, s.At)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.manager.Flush(ctx); err != nil {
			t.Errorf("Flush waits for a pod that the API does not have: %v", err)
		}
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason == "" {
			t.Errorf("pending is %+v, want the gone pod with a reason", pending)
		}
		// It was there after all: the observation ends the wait.
		w.api.ForgetRequests()
		w.api.Put(gone)
		w.wantLog("the pod is seen again", "PATCH ns/gone")
		w.wantNothingPending()
	})
}

// The Node authorizer knows no pod that is gone: it answers a node's look for it with 403.
func TestForbiddenLookAfterNotFoundMeansGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("gone")
		w.api.Remove("ns", "gone")
		w.api.SetFault(refusing("GET", apierrors.NewForbidden(podResource, "gone", errors.New("no relationship found between node and this object"))))
		w.set(pod, running(pod, true))
		time.Sleep(20 * time.Second)
		w.wantLog("looked for once, then left alone", "PATCH ns/gone", "GET ns/gone")
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitGone.String() {
			t.Errorf("pending is %+v, want the pod held as gone", pending)
		}
	})
}

// Invariant 3, right pod.
func TestRecreatedPodOfTheSameNameIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.create("web")
		w.run()
		w.api.OnStore(nil) // the news has not reached this node
		fresh := newPod("web", func(p *v1.Pod) { p.UID = "another-uid" })
		w.api.Put(fresh)
		w.set(old, ended(old, 1))
		w.wantLog("the conflict is looked into once", "PATCH ns/web", "GET ns/web")
		must(w.manager.TerminatePod(old))
		w.wantLog("news is looked into once", "GET ns/web")
		pass(time.Hour)
		got := w.api.Pod(fresh)
		if got == nil || got.UID != "another-uid" || got.Status.Phase != v1.PodPending {
			t.Errorf("the new pod was touched: %+v", got)
		}
		if _, ok := w.manager.GetPodStatus(old.UID); !ok {
			t.Error("the cached status was thrown away")
		}
	})
}
