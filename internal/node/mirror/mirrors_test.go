package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/podstatus"
)

// mirrorStory is Mirrors on a fake API that keeps pods, gives them UIDs, and says what it was asked.
type mirrorStory struct {
	t       *testing.T
	client  *fake.Clientset
	mirrors *Mirrors

	mu      sync.Mutex // guards what follows
	nodeUID types.UID
	inUse   map[types.UID]bool
	down    error // what every request answers, if not nil
	denied  error // what every delete answers, as a webhook may, if not nil
	blind   bool  // every delete answers that there is no such pod, as NodeRestriction does after a start of the server
	uids    int
	asked   []string
}

func newMirrorStory(t *testing.T, existing ...runtime.Object) *mirrorStory {
	s := &mirrorStory{t: t, client: fake.NewClientset(existing...), nodeUID: "node-uid", inUse: map[types.UID]bool{}}
	s.client.PrependReactor("*", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.asked) > 1000 {
			panic(fmt.Sprintf("Mirrors go in circles without a pause: %q ...", s.asked[:10]))
		}
		switch a := a.(type) {
		case k8stesting.CreateAction:
			pod := a.GetObject().(*v1.Pod)
			s.uids++
			pod.UID = types.UID(fmt.Sprintf("mirror-%d", s.uids))
			s.asked = append(s.asked, fmt.Sprintf("create %s of %s", pod.Name, pod.Annotations[v1.MirrorPodAnnotationKey]))
		case k8stesting.DeleteAction:
			o := a.GetDeleteOptions()
			s.asked = append(s.asked, fmt.Sprintf("delete %s uid=%s grace=%d", a.GetName(), *o.Preconditions.UID, *o.GracePeriodSeconds))
			if s.denied != nil {
				return true, nil, s.denied
			}
			if s.blind {
				return true, nil, apierrors.NewNotFound(v1.Resource("pod"), a.GetName())
			}
		}
		return s.down != nil, nil, s.down
	})
	m, err := New(Options{
		Client: s.client, NodeName: "n",
		NodeUID: func() types.UID { s.mu.Lock(); defer s.mu.Unlock(); return s.nodeUID },
		InUse:   func(uid types.UID) bool { s.mu.Lock(); defer s.mu.Unlock(); return s.inUse[uid] },
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mirrors = m
	return s
}

func (s *mirrorStory) run() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.mirrors.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("Run returned %v, want nil", err)
		}
	}
}

// change alters what the story's callbacks answer.
func (s *mirrorStory) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *mirrorStory) observe(origin source.Origin, op source.Op, pods ...*v1.Pod) {
	s.mirrors.Observe(source.Change{Origin: origin, Op: op, Pods: pods})
}

func (s *mirrorStory) expect(when string, want ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.asked, "; "); got != strings.Join(want, "; ") {
		s.t.Errorf("%s: asked the API for %q, want %q", when, got, strings.Join(want, "; "))
	}
	s.asked = nil
}

func staticPod(name, hash string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(hash),
			Annotations: map[string]string{podstatus.SourceAnnotation: podstatus.SourceFile, podstatus.HashAnnotation: hash},
		},
		Spec: v1.PodSpec{NodeName: "n"},
	}
}

func mirrorPod(name, uid, hash string) *v1.Pod {
	pod := podFor(staticPod(name, hash), "n", "node-uid")
	pod.UID = types.UID(uid)
	return pod
}

func TestMirrorLivesAsLongAsItsStaticPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMirrorStory(t)
		defer s.run()()
		web := staticPod("web", "h1")
		s.observe(source.FromFile, source.Set, web)
		s.expect("before the API has spoken")
		s.observe(source.FromAPI, source.Set)
		s.expect("both have spoken", "create web of h1")

		created, err := s.client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owner := created.OwnerReferences
		if len(owner) != 1 || owner[0].UID != "node-uid" || owner[0].Kind != "Node" || owner[0].Name != "n" || !*owner[0].Controller || owner[0].BlockOwnerDeletion != nil {
			t.Errorf("got owners %+v, want the node as controller, which NodeRestriction demands", owner)
		}
		s.observe(source.FromAPI, source.Update, created)
		s.expect("the watch brings what we know")

		if err := s.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "default", "web"); err != nil {
			t.Fatal(err)
		}
		s.observe(source.FromAPI, source.Remove, created)
		s.expect("someone deleted it by force", "create web of h1")
		s.observe(source.FromFile, source.Remove, web)
		s.expect("the manifest is removed", "delete web uid=mirror-2 grace=0")
		if p := s.mirrors.Pending(); len(p) != 0 {
			t.Errorf("pending: %v, want nothing", p)
		}
	})
}

func TestStaleMirrorIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := mirrorPod("web", "mirror-0", "h0")
		s := newMirrorStory(t, old)
		defer s.run()()
		s.observe(source.FromAPI, source.Set, old)
		s.observe(source.FromFile, source.Set, staticPod("web", "h1"))
		s.expect("the manifest changed while statusd was away", "delete web uid=mirror-0 grace=0", "create web of h1")
		s.observe(source.FromAPI, source.Update, old)
		s.expect("late news of what we deleted")
		s.observe(source.FromAPI, source.Remove, old)
		s.expect("later news of it")
	})
}

func TestMirrorBeingDeletedIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ending := mirrorPod("web", "mirror-0", "h1")
		s := newMirrorStory(t, ending)
		defer s.run()()
		s.observe(source.FromFile, source.Set, staticPod("web", "h1"))
		s.observe(source.FromAPI, source.Set, ending)
		s.expect("all is well")
		now := metav1.Now()
		deleted := ending.DeepCopy()
		deleted.DeletionTimestamp = &now
		s.change(func() { s.inUse["h1"] = true }) // its static pod runs on, and must not keep the old mirror
		s.observe(source.FromAPI, source.Update, deleted)
		s.expect("kubectl delete", "delete web uid=mirror-0 grace=0", "create web of h1")
	})
}

func TestOrphanedMirrorGoesOnceTheManifestsHaveSpoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orphan, other := mirrorPod("web", "mirror-0", "h0"), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app", UID: "app"}}
		s := newMirrorStory(t, orphan, other)
		defer s.run()()
		s.observe(source.FromAPI, source.Set, orphan, other)
		time.Sleep(time.Hour)
		s.expect("the manifests have not spoken: the static pod may still come")
		s.observe(source.FromFile, source.Set)
		s.expect("there is no static pod", "delete web uid=mirror-0 grace=0")
		time.Sleep(calm + time.Second)
		synctest.Wait()
		if n := len(s.mirrors.pairs); n != 0 {
			t.Errorf("%d pairs are remembered, want none: memory would grow with every static pod there ever was", n)
		}
	})
}

func TestMirrorStaysWhileItsStaticPodEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, mirror := staticPod("web", "h1"), mirrorPod("web", "mirror-0", "h1")
		s := newMirrorStory(t, mirror)
		defer s.run()()
		s.observe(source.FromAPI, source.Set, mirror)
		s.observe(source.FromFile, source.Set, web)
		s.change(func() { s.inUse["h1"] = true })
		s.observe(source.FromFile, source.Remove, web)
		s.observe(source.FromFile, source.Update, staticPod("web", "h2"))
		time.Sleep(20 * time.Second)
		s.expect("the old pod's last statuses need the mirror")
		s.change(func() { s.inUse["h1"] = false })
		time.Sleep(2 * time.Second)
		s.expect("it has ended", "delete web uid=mirror-0 grace=0", "create web of h2")
	})
}

func TestMirrorsConvergeAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMirrorStory(t)
		defer s.run()()
		s.change(func() { s.nodeUID = "" })
		s.observe(source.FromAPI, source.Set)
		s.observe(source.FromFile, source.Set, staticPod("web", "h1"))
		time.Sleep(10 * time.Second)
		s.expect("the node is not registered, and no mirror can have an owner")
		if err := s.mirrors.Pending()["default/web"]; !errors.Is(err, errNotRegistered) {
			t.Errorf("got pending %v, want that the node is not registered", err)
		}
		s.change(func() { s.nodeUID, s.down = "node-uid", errors.New("connection refused") })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		n := 0
		s.change(func() { n = len(s.asked) })
		if n < 10 || n > 25 {
			t.Errorf("%d requests in ten minutes of outage, want more than one a minute at the start and about one a minute later", n)
		}
		if err := s.mirrors.Pending()["default/web"]; err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got pending %v, want the reason", err)
		}
		s.change(func() { s.asked, s.down = nil, nil })
		time.Sleep(2 * time.Minute)
		s.expect("the API is back, and nobody said anything", "create web of h1")
		if p := s.mirrors.Pending(); len(p) != 0 {
			t.Errorf("still pending: %v", p)
		}
	})
}

// For a while after its start the API server finds no pod that a node wants to delete.
func TestMirrorThatTheServerDoesNotFindIsDeletedNevertheless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale, orphan := mirrorPod("web", "mirror-8", "h0"), mirrorPod("db", "mirror-9", "h9")
		s := newMirrorStory(t, stale, orphan)
		s.blind = true
		defer s.run()()
		s.observe(source.FromAPI, source.Set, stale, orphan)
		s.observe(source.FromFile, source.Set, staticPod("web", "h1"))
		s.expect("the server has just started", "delete db uid=mirror-9 grace=0", "delete web uid=mirror-8 grace=0")
		for _, name := range []string{"default/web", "default/db"} {
			if err := s.mirrors.Pending()[name]; err == nil || !strings.Contains(err.Error(), "although it is there") {
				t.Errorf("%s: got pending %v, want that the server contradicts itself", name, err)
			}
		}
		s.change(func() { s.blind = false })
		time.Sleep(time.Second)
		synctest.Wait()
		list, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 1 || list.Items[0].Name != "web" || list.Items[0].Annotations[v1.MirrorPodAnnotationKey] != "h1" {
			t.Errorf("a second after the server has found its pods again it has %v, want the new mirror of web", list.Items)
		}
		if p := s.mirrors.Pending(); len(p) != 0 {
			t.Errorf("still pending: %v", p)
		}
	})
}

func TestMirrorThatSomeoneElseDeletedNeedsNoSecondTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := mirrorPod("web", "mirror-0", "h0") // the watch is late
		s := newMirrorStory(t)
		defer s.run()()
		s.observe(source.FromAPI, source.Set, gone)
		s.observe(source.FromFile, source.Set, staticPod("web", "h1"))
		s.expect("nothing to delete", "delete web uid=mirror-0 grace=0", "create web of h1")
	})
}

// The answer to our create comes after the watch has told of the mirror and of its end.
func TestMirrorThatEndedBeforeItsAnswerCameIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMirrorStory(t)
		deleted := false
		s.client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
			if deleted {
				return false, nil, nil
			}
			deleted = true
			mirror := mirrorPod("web", "mirror-0", "h1")
			s.observe(source.FromAPI, source.Update, mirror)
			s.observe(source.FromAPI, source.Remove, mirror)
			return true, mirror, nil
		})
		defer s.run()()
		s.observe(source.FromAPI, source.Set)
		s.observe(source.FromFile, source.Set, staticPod("web", "h1"))
		time.Sleep(waitRetry)
		s.expect("its end was noticed", "create web of h1")
		if _, err := s.client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
			t.Errorf("the mirror is missing: %v", err)
		}
	})
}

func TestForeignPodInTheWayIsReportedNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "foreign"}, Spec: v1.PodSpec{NodeName: "n"}}
		s := newMirrorStory(t, foreign)
		defer s.run()()
		s.observe(source.FromAPI, source.Set, foreign)
		s.observe(source.FromFile, source.Set, staticPod("web", "h1"))
		s.expect("the name is taken", "create web of h1")
		if err := s.mirrors.Pending()["default/web"]; err == nil || !strings.Contains(err.Error(), "in the way") {
			t.Errorf("got %v, want an error that says what is in the way", err)
		}
	})
}

func TestMirrorMadeBeforeARestartIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := mirrorPod("web", "mirror-0", "h1") // created, but the answer was lost and the watch is late
		s := newMirrorStory(t, made)
		defer s.run()()
		s.observe(source.FromAPI, source.Set)
		s.observe(source.FromFile, source.Set, staticPod("web", "h1"))
		s.expect("it is adopted", "create web of h1")
		if p := s.mirrors.Pending(); len(p) != 0 {
			t.Errorf("pending: %v, want nothing", p)
		}
		stale := mirrorPod("db", "mirror-9", "h8")
		if err := s.client.Tracker().Add(stale); err != nil {
			t.Fatal(err)
		}
		s.observe(source.FromFile, source.Update, staticPod("db", "h9"))
		s.expect("a stale one is replaced", "create db of h9", "delete db uid=mirror-9 grace=0", "create db of h9")
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	uid := func() types.UID { return "node-uid" }
	client := fake.NewClientset()
	for name, o := range map[string]Options{
		"without client":         {NodeName: "n", NodeUID: uid},
		"without node":           {Client: client, NodeUID: uid},
		"without the node's UID": {Client: client, NodeName: "n"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A webhook answers each deletion with 409 for a minute. That proves nothing: the mirror goes once the webhook
// is gone, and until then the tries back off and are pending.
func TestConflictOfAWebhook_IsNoProofThatTheMirrorIsGone(t *testing.T) {
	for name, edited := range map[string]bool{"manifest removed": false, "manifest edited": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				static, mirror := staticPod("web", "h1"), mirrorPod("web", "mirror-0", "h1")
				s := newMirrorStory(t, mirror)
				defer s.run()()
				s.observe(source.FromFile, source.Set, static)
				s.observe(source.FromAPI, source.Set, mirror)
				s.expect("nothing is to be done")
				s.change(func() {
					s.denied = apierrors.NewConflict(v1.Resource("pods"), "web", errors.New("the webhook says no"))
				})
				s.observe(source.FromFile, source.Remove, static)
				if edited {
					s.observe(source.FromFile, source.Update, staticPod("web", "h2"))
				}
				time.Sleep(time.Minute)
				if err := s.mirrors.Pending()["default/web"]; !apierrors.IsConflict(err) {
					t.Errorf("pending is %v, want the conflict", err)
				}
				s.change(func() {
					if len(s.asked) > 12 {
						t.Errorf("%d requests in a minute: %q", len(s.asked), s.asked)
					}
					s.denied, s.asked = nil, nil
				})
				time.Sleep(2 * time.Minute)
				want := []string{"delete web uid=mirror-0 grace=0"}
				if edited {
					want = append(want, "create web of h2")
				}
				s.expect("the webhook is gone", want...)
				if pending := s.mirrors.Pending(); len(pending) > 0 {
					t.Errorf("pending: %v", pending)
				}
			})
		})
	}
}

// A finalizer keeps the old mirror in the API after its deletion: the new one is tried with back-off.
func TestMirrorThatAFinalizerHolds_IsTriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mirror := mirrorPod("web", "mirror-0", "h1")
		s := newMirrorStory(t, mirror)
		s.client.PrependReactor("delete", "pods", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		defer s.run()()
		s.observe(source.FromFile, source.Set, staticPod("web", "h2"))
		s.observe(source.FromAPI, source.Set, mirror)
		time.Sleep(time.Hour)
		s.change(func() {
			if len(s.asked) > 90 {
				t.Errorf("%d requests in an hour", len(s.asked))
			}
			s.asked = nil
		})
		if err := s.mirrors.Pending()["default/web"]; err == nil {
			t.Error("nothing is pending")
		}
	})
}

// Another agent with the name of this node deletes each mirror that is not of its own static pods and creates its own, and a
// controller may delete mirrors that it does not know: neither is answered without a pause.
func TestMirrorFight_IsBraked(t *testing.T) {
	const lasts = 10 * time.Minute
	for name, c := range map[string]struct {
		static *v1.Pod // of this agent
		other  bool    // creates a mirror of its own
		most   int     // requests
	}{
		"deleted again and again":            {staticPod("web", "h1"), false, 13},
		"replaced again and again":           {staticPod("web", "h1"), true, 13},
		"created for a pod that is not here": {nil, true, 13},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newMirrorStory(t)
				defer s.run()()
				s.observe(source.FromAPI, source.Set)
				s.observe(source.FromFile, source.Set)
				if c.static != nil {
					s.observe(source.FromFile, source.Update, c.static)
				}
				for i, begin := 0, time.Now(); time.Since(begin) < lasts; i++ {
					time.Sleep(250 * time.Millisecond)
					synctest.Wait()
					pods, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					theirs := mirrorPod("web", fmt.Sprint("theirs-", i), "h2")
					isTheirs := false
					for _, pod := range pods.Items {
						if isTheirs = pod.Annotations[v1.MirrorPodAnnotationKey] == "h2"; isTheirs {
							continue
						}
						if err := s.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), pod.Namespace, pod.Name); err != nil {
							t.Fatal(err)
						}
						s.observe(source.FromAPI, source.Remove, &pod)
					}
					if c.other && !isTheirs {
						if err := s.client.Tracker().Add(theirs); err != nil {
							t.Fatal(err)
						}
						s.observe(source.FromAPI, source.Update, theirs)
					}
				}
				s.change(func() {
					if n := len(s.asked); n < 5 || n > c.most {
						t.Errorf("%d requests in %s, want 5 to %d: %q", n, lasts, c.most, s.asked[:min(n, 20)])
					}
				})
				synctest.Wait()
			})
		})
	}
}

// An edit is no fight, however soon it comes after another one.
func TestEditsOfAStaticPod_AreNotBraked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMirrorStory(t)
		defer s.run()()
		s.observe(source.FromAPI, source.Set)
		s.observe(source.FromFile, source.Set, staticPod("web", "h0"))
		s.expect("at first", "create web of h0")
		for i := 1; i < 20; i++ {
			before, after := staticPod("web", fmt.Sprint("h", i-1)), staticPod("web", fmt.Sprint("h", i))
			if i%2 == 0 {
				s.observe(source.FromFile, source.Update, after)
				s.observe(source.FromFile, source.Remove, before)
			} else {
				s.observe(source.FromFile, source.Remove, before)
				s.observe(source.FromFile, source.Update, after)
			}
			s.expect("edited", fmt.Sprintf("delete web uid=mirror-%d grace=0", i), fmt.Sprintf("create web of h%d", i))
		}
	})
}
