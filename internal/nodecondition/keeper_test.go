package nodecondition

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// story is a keeper in virtual time, with a Node whose patches can fail.
type story struct {
	t      *testing.T
	client *fake.Clientset
	keeper *Keeper
	owner  *Owner
	other  *Owner // of the zero Terms
	stop   func() // ends the keeper, and waits for it

	mu   sync.Mutex               // guards what follows
	fail func(patch string) error // before a patch is applied; nil: none fails
	lose func(patch string) error // after it was
}

// fails sets how patches fail.
func (s *story) fails(before, after func(patch string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.lose = before, after
}

var up = v1.NodeCondition{Type: "Up", Status: v1.ConditionTrue, Reason: "Fine", Message: "all is well"}

// tell plays a story: the keeper runs while play does.
func tell(t *testing.T, terms Terms, play func(s *story)) {
	synctest.Test(t, func(t *testing.T) {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "first"}, Status: v1.NodeStatus{
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}, {Type: "own/Old", Status: v1.ConditionTrue}}}}
		s := &story{t: t, client: fake.NewClientset(node)}
		s.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(v1.Resource("nodes"), "n1", errors.New("the right to patch must do"))
		})
		s.client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			patch := string(a.(clienttesting.PatchAction).GetPatch())
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.fail != nil {
				if err := s.fail(patch); err != nil {
					return true, nil, err
				}
			}
			if s.lose == nil || s.lose(patch) == nil {
				return false, nil, nil
			}
			_, _, _ = clienttesting.ObjectReaction(s.client.Tracker())(a)
			return true, nil, s.lose(patch)
		})
		s.keeper = New(Options{Client: s.client, Node: "n1", Logger: slog.New(slog.DiscardHandler)})
		s.owner, s.other = s.keeper.Owner(terms), s.keeper.Owner(Terms{})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.keeper.Run(ctx) })
		s.stop = func() {
			cancel()
			running.Wait()
		}
		defer s.stop()
		play(s)
	})
}

// conditions are those of the Node, by type.
func (s *story) conditions() map[v1.NodeConditionType]v1.NodeCondition {
	s.t.Helper()
	synctest.Wait()
	object, err := s.client.Tracker().Get(v1.SchemeGroupVersion.WithResource("nodes"), "", "n1")
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[v1.NodeConditionType]v1.NodeCondition{}
	for _, c := range object.(*v1.Node).Status.Conditions {
		all[c.Type] = c
	}
	return all
}

// The right to patch is enough, one request per change, and heartbeats are as far apart as they should be.
func TestTheRightToPatchIsEnough(t *testing.T) {
	tell(t, Terms{}, func(s *story) {
		s.owner.Set(up)
		if got := s.conditions()["Up"]; !same(got, up) {
			t.Fatalf("got %+v", got)
		}
		s.client.ClearActions()
		time.Sleep(time.Minute)
		down := up
		down.Status = v1.ConditionFalse
		s.owner.Set(down)
		if got := s.conditions()["Up"]; !same(got, down) || len(s.client.Actions()) != 1 {
			t.Errorf("after %d requests: %+v, want one request", len(s.client.Actions()), got)
		}
		time.Sleep(3 * DefaultHeartbeat)
		s.conditions()
		if n := len(s.client.Actions()); n != 4 {
			t.Errorf("%d requests after 3 times the heartbeat, want 4", n)
		}
	})
}

// A condition that was written by a request whose answer was lost is removed at the end.
func TestWhatMayHaveBeenWrittenIsRemovedAtTheEnd(t *testing.T) {
	tell(t, Terms{RemoveAtEnd: true}, func(s *story) {
		s.fails(nil, func(patch string) error {
			if strings.Contains(patch, "all is well") {
				return errors.New("connection reset")
			}
			return nil
		})
		s.owner.Set(up)
		if got := s.conditions(); !same(got["Up"], up) {
			t.Fatalf("got %+v", got)
		}
		s.stop()
		if got := s.conditions(); got["Up"].Type != "" || got[v1.NodeReady].Type == "" {
			t.Errorf("after the end the conditions are %+v", got)
		}
	})
}

// A message that changes alone waits, one with its status does not.
func TestAMessageAloneMayWait(t *testing.T) {
	tell(t, Terms{MessageDelay: 30 * time.Second}, func(s *story) {
		s.owner.Set(up)
		s.conditions()
		s.client.ClearActions()
		next := up
		for i := range 60 {
			time.Sleep(time.Second)
			next.Message = strings.Repeat("x", i)
			s.owner.Set(next)
		}
		s.conditions()
		if n := len(s.client.Actions()); n != 1 && n != 2 {
			t.Errorf("%d requests for a message that changes for a minute, want one per 30 s", n)
		}
		next.Reason = "Another"
		s.owner.Set(next)
		time.Sleep(pause)
		if got := s.conditions()["Up"]; !same(got, next) {
			t.Errorf("got %+v", got)
		}
	})
}

// A Node that was created again has other conditions, and they are written again.
func TestANodeThatWasCreatedAgain(t *testing.T) {
	tell(t, Terms{}, func(s *story) {
		s.owner.Set(up)
		s.conditions()
		time.Sleep(time.Minute)
		if err := s.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"),
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "second"}}, ""); err != nil {
			t.Fatal(err)
		}
		created := time.Now()
		s.fails(func(patch string) error {
			if strings.Contains(patch, `"uid":"first"`) {
				return apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Node").GroupKind(), "n1", nil)
			}
			return nil
		}, nil)
		time.Sleep(DefaultHeartbeat)
		if got := s.conditions()["Up"]; !same(got, up) || got.LastTransitionTime.Time.Before(created) {
			t.Errorf("got %+v, want it with a transition after %v", got, created)
		}
	})
}

// What is set and removed while the API server is down is done once it is back, and only then.
func TestThenFollowsTheWrite(t *testing.T) {
	tell(t, Terms{Prefix: "own/"}, func(s *story) {
		s.fails(func(string) error { return errors.New("connection refused") }, nil)
		own := up
		own.Type = "own/Up"
		var done atomic.Int32
		s.owner.Set(own)
		s.owner.Then(func() { done.Add(1) })
		time.Sleep(10 * time.Second)
		if s.conditions(); done.Load() != 0 {
			t.Error("done before it is written")
		}
		s.fails(nil, nil)
		time.Sleep(15 * time.Second)
		if got := s.conditions(); done.Load() != 1 || !same(got["own/Up"], own) || got["own/Old"].Type == "" {
			t.Errorf("done %d times; after 25 s: %+v", done.Load(), got)
		}
		time.Sleep(settle)
		if got := s.conditions(); got["own/Old"].Type != "" {
			t.Errorf("one from before is still there: %+v", got)
		}
		s.owner.Remove("own/Up")
		if got := s.conditions(); got["own/Up"].Type != "" || got[v1.NodeReady].Type == "" {
			t.Errorf("after the removal: %+v", got)
		}
	})
}

// Two parts of a process own conditions of one Node: one request writes both, and at the end only those go of the owner that
// wants so.
func TestOwnersShareAKeeper(t *testing.T) {
	tell(t, Terms{RemoveAtEnd: true}, func(s *story) {
		lasting := v1.NodeCondition{Type: "Lasting", Status: v1.ConditionTrue, Reason: "Fine", Message: "it lasts"}
		s.owner.Set(v1.NodeCondition{Type: "Up", Status: v1.ConditionFalse, Reason: "Starting"})
		s.conditions() // the keeper pauses after a write, so that it sees both changes below at once
		before := len(s.client.Actions())
		s.owner.Set(up)
		s.other.Set(lasting)
		time.Sleep(pause)
		if got := s.conditions(); !same(got["Up"], up) || !same(got["Lasting"], lasting) {
			t.Fatalf("got %+v", got)
		}
		if n := len(s.client.Actions()) - before; n != 1 {
			t.Errorf("%d requests, want one that writes both", n)
		}
		s.stop()
		if got := s.conditions(); got["Up"].Type != "" || !same(got["Lasting"], lasting) {
			t.Errorf("after the end the conditions are %+v", got)
		}
	})
}

// The Node of another machine gets no conditions of this one, also not when this process ends.
func TestNodeOfAnotherMachine_IsNotWritten(t *testing.T) {
	for _, later := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "first"}})
			claimed := make(chan struct{})
			keeper := New(Options{Client: client, Node: "n1", Claimed: claimed, Logger: slog.New(slog.DiscardHandler)})
			keeper.Owner(Terms{RemoveAtEnd: true}).Set(up)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { keeper.Run(ctx) })
			time.Sleep(time.Hour)
			if n := len(client.Actions()); n > 0 {
				t.Errorf("%d requests for the Node of another machine", n)
			}
			if later {
				close(claimed)
				time.Sleep(time.Minute)
				if len(client.Actions()) == 0 {
					t.Error("nothing was written to the own Node")
				}
				client.ClearActions()
			}
			cancel()
			running.Wait()
			if n := len(client.Actions()); n > 0 != later {
				t.Errorf("%d requests at the end, want some: %v", n, later)
			}
		})
	}
}
