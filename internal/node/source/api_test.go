package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/podstatus"
)

// fakeAPI answers list and watch of pods as the test scripts it.
type fakeAPI struct {
	client *fake.Clientset

	mu        sync.Mutex // guards what follows
	pods      []v1.Pod   // what list answers
	listErr   error
	watchErr  error // what the next watch answers, once
	watcher   *watch.FakeWatcher
	selectors []string
}

func newFakeAPI() *fakeAPI {
	f := &fakeAPI{client: fake.NewClientset()}
	f.client.PrependReactor("list", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.selectors = append(f.selectors, a.(k8stesting.ListAction).GetListRestrictions().Fields.String())
		return true, &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "100"}, Items: f.pods}, f.listErr
	})
	f.client.PrependWatchReactor("pods", func(a k8stesting.Action) (bool, watch.Interface, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.selectors = append(f.selectors, a.(k8stesting.WatchAction).GetWatchRestrictions().Fields.String())
		if err := f.watchErr; err != nil {
			f.watchErr = nil
			return true, nil, err
		}
		f.watcher = watch.NewFake()
		return true, f.watcher, nil
	})
	return f
}

// change alters what the API answers.
func (f *fakeAPI) change(alter func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	alter()
}

// stream is the watch that is open now.
func (f *fakeAPI) stream() *watch.FakeWatcher {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watcher
}

func apiPod(name, uid, version string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid), ResourceVersion: version},
		Spec:       v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Image: "rv" + version}}},
	}
}

func TestAPISpeaksOnceInFullThenInDifferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		f.pods = []v1.Pod{*apiPod("a", "1", "1"), *apiPod("b", "2", "2")}
		f.listErr = errors.New("connection refused")
		var s story
		a, err := NewAPI(APIOptions{Client: f.client, NodeName: "n", Handle: s.handle, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		expect := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := s.take(); got != want {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}

		expect("the API is down", "")
		if a.HasSynced() || a.Err() == nil || !strings.Contains(a.Err().Error(), "connection refused") {
			t.Errorf("while down: synced %v, error %v", a.HasSynced(), a.Err())
		}
		f.change(func() { f.listErr = nil })
		time.Sleep(time.Minute)
		expect("the API is up", "api set: default/a(rv1) default/b(rv2)")
		if !a.HasSynced() || a.Err() != nil {
			t.Errorf("while up: synced %v, error %v", a.HasSynced(), a.Err())
		}

		f.stream().Add(apiPod("c", "3", "101"))
		expect("a pod is bound", "api update: default/c(rv101)")
		f.stream().Modify(apiPod("c", "3", "102"))
		expect("a pod changes", "api update: default/c(rv102)")
		f.stream().Delete(apiPod("c", "3", "103"))
		expect("a pod is deleted", "api remove: default/c(rv103)")

		// The watch is too old, and meanwhile a stayed as it was, b was deleted and made
		// again, c2 changed, and d was bound.
		f.stream().Add(apiPod("c2", "7", "104"))
		expect("one more pod", "api update: default/c2(rv104)")
		f.change(func() {
			f.pods = []v1.Pod{*apiPod("a", "1", "1"), *apiPod("b", "5", "150"), *apiPod("c2", "7", "149"), *apiPod("d", "4", "151")}
		})
		gone := apierrors.NewResourceExpired("too old resource version")
		f.stream().Error(&gone.ErrStatus)
		time.Sleep(time.Minute)
		expect("after 410 and a new list", "api remove: default/b(rv2); api update: default/b(rv150) default/c2(rv149) default/d(rv151)")

		f.stream().Stop() // the server closes the watch, as it does every few minutes
		time.Sleep(time.Minute)
		f.stream().Add(apiPod("e", "6", "160"))
		expect("on the next watch", "api update: default/e(rv160)")

		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v at the end of its context, want nil", err)
		}
		for _, selector := range f.selectors {
			if selector != "spec.nodeName=n" {
				t.Errorf("a request had field selector %q: the Node authorizer refuses anything but spec.nodeName=n", selector)
			}
		}
	})
}

// Every user may set the annotation that marks static pods on a pod of the API.
func TestAPodOfTheAPIIsNotStaticWhateverItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := func(pod *v1.Pod, annotations map[string]string) *v1.Pod {
			pod.Annotations = annotations
			return pod
		}
		f := newFakeAPI()
		f.pods = []v1.Pod{*claims(apiPod("listed", "1", "1"), map[string]string{podstatus.SourceAnnotation: "file", "app": "web"})}
		got := map[string]*v1.Pod{}
		a, err := NewAPI(APIOptions{Client: f.client, NodeName: "n", Logger: slog.New(slog.DiscardHandler), Handle: func(c Change) {
			for _, pod := range c.Pods {
				got[pod.Name] = pod
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.Run(ctx)
		synctest.Wait()
		watched := claims(apiPod("watched", "2", "101"), map[string]string{podstatus.SourceAnnotation: "http"})
		mirror := claims(apiPod("mirror", "3", "102"), map[string]string{podstatus.SourceAnnotation: "file", v1.MirrorPodAnnotationKey: "hash"})
		f.stream().Add(watched)
		f.stream().Add(mirror)
		f.stream().Add(apiPod("plain", "4", "103"))
		synctest.Wait()
		for name, want := range map[string]string{"listed": "api", "watched": "api", "mirror": "file", "plain": ""} {
			pod := got[name]
			if pod == nil {
				t.Fatalf("pod %s did not arrive", name)
			}
			if source := pod.Annotations[podstatus.SourceAnnotation]; source != want || podstatus.IsStatic(pod) {
				t.Errorf("%s: source %q, static %t, want %q and not static", name, source, podstatus.IsStatic(pod), want)
			}
		}
		if got["listed"].Annotations["app"] != "web" {
			t.Error("another annotation is lost")
		}
		if watched.Annotations[podstatus.SourceAnnotation] != "http" {
			t.Error("the pod that the watch delivered was written to, and others may hold it")
		}
	})
}

func TestAPIFollowsAgainAfterARefusedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		f.watchErr = apierrors.NewTooManyRequests("later", 1)
		var s story
		a, err := NewAPI(APIOptions{Client: f.client, NodeName: "n", Handle: s.handle, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.Run(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		f.stream().Add(apiPod("a", "1", "101"))
		synctest.Wait()
		if got, want := s.take(), "api set:; api update: default/a(rv101)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// After a restore from a backup the watch goes on from a version that the server has yet to reach.
func TestAPIListsAgainWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		f.pods = []v1.Pod{*apiPod("a", "1", "90"), *apiPod("b", "2", "91")}
		var s story
		a, err := NewAPI(APIOptions{Client: f.client, NodeName: "n", Handle: s.handle, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		a.Relist() // before Run there is no watch to end
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.Run(ctx)
		silent := f.stream()
		s.take()
		f.change(func() { f.pods = []v1.Pod{*apiPod("a", "1", "70"), *apiPod("c", "3", "71")} })
		a.Relist()
		synctest.Wait()
		if got, want := s.take(), "api remove: default/b(rv91); api update: default/a(rv70) default/c(rv71)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if f.stream() == silent || !silent.IsStopped() {
			t.Error("the watch from before goes on")
		}
		if err := a.Err(); err != nil {
			t.Errorf("the source says %v", err)
		}
	})
}

// client-go takes a Status of a gateway for a list without pods: the node would stop all of them.
func TestAPI_AnswerThatIsNoList_IsAnError(t *testing.T) {
	body := `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}))
	defer gateway.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: gateway.URL})
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAPI(APIOptions{Client: client, NodeName: "n", Handle: func(Change) {}})
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := cache.ToListerWithContext(a.watch).ListWithContext(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); err == nil || a.Err() == nil {
		t.Errorf("the list returned %v and Err %v, want an error", err, a.Err())
	}
	body = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"}}`
	if err := list(); err != nil || a.Err() != nil {
		t.Errorf("a list without pods returned %v and Err %v", err, a.Err())
	}
}

func ExampleSerial() {
	handle := Serial(func(c Change) { fmt.Println(c.Origin, c.Op, len(c.Pods)) })
	// Both sources get the same handler, NewAPI(APIOptions{Handle: handle, …}) and
	// NewManifests(ManifestsOptions{Handle: handle, …}), and each speaks in full first.
	handle(Change{Origin: FromAPI, Op: Set})
	handle(Change{Origin: FromFile, Op: Set})
	// Output:
	// api set 0
	// file set 0
}
