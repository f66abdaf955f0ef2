package runtime

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWatchMergesWhatWasNotYetReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var changes Changes
		watch := changes.Watch(ctx)
		for range 1000 {
			changes.Notify("a")
			changes.Notify("b")
		}
		synctest.Wait()
		got := drain(watch)
		// The delivery may have picked up one of the two before the burst was over.
		if len(got) < 2 || len(got) > 3 {
			t.Errorf("2000 changes of 2 pods with no receiver: got %v, want each pod once, and at most one of them twice", got)
		}
		cancel()
		synctest.Wait()
		if _, open := <-watch; open {
			t.Error("the channel of an ended watch is still open")
		}
	})
}

func TestWatchDeliversAChangeThatComesWhileThePodIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var changes Changes
		watch := changes.Watch(ctx)
		for i := range 3 {
			changes.Notify("a")
			synctest.Wait()
			if got := <-watch; got != "a" {
				t.Fatalf("change %d: got %q, want a", i, got)
			}
		}
	})
}

func TestASlowWatcherDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var changes Changes
		_ = changes.Watch(ctx) // never received from
		watch := changes.Watch(ctx)
		for i := range 100 {
			uid := types.UID(fmt.Sprint(i))
			changes.Notify(uid)
			if got := <-watch; got != uid {
				t.Fatalf("got %q, want %q", got, uid)
			}
		}
	})
}

func drain(watch <-chan types.UID) []types.UID {
	var got []types.UID
	for {
		synctest.Wait()
		select {
		case uid := <-watch:
			got = append(got, uid)
		default:
			return got
		}
	}
}

func TestDescribeNamesEachField(t *testing.T) {
	got := Describe([]Unsupported{{Field: "spec.a", Reason: "no a here"}, {Field: "spec.b[0]", Reason: "no b"}})
	if want := "spec.a: no a here; spec.b[0]: no b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStartErrorCarriesReasonAndCause(t *testing.T) {
	err := fmt.Errorf("start web: %w", &StartError{Reason: WaitingRunError, Err: fmt.Errorf("no file: %w", ErrNotFound)})
	start, ok := errors.AsType[*StartError](err)
	if !ok || start.Reason != WaitingRunError || !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v (start error: %v), want reason %s and cause %v", err, start, WaitingRunError, ErrNotFound)
	}
}
