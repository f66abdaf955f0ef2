package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lifecycle is what parts have done, in order.
type lifecycle struct {
	mu  sync.Mutex // guards did
	did []string
}

func (l *lifecycle) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.did = append(l.did, what)
}

// part is a part that stops on request.
func (l *lifecycle) part(name string) Part {
	return Part{Name: name, Run: func(ctx context.Context) error {
		<-ctx.Done()
		l.note(name + " stopped")
		return nil
	}}
}

func (l *lifecycle) run(t *testing.T, ctx context.Context, parts ...Part) error {
	t.Helper()
	return RunParts(ctx, slog.New(slog.DiscardHandler), 10*time.Second, parts)
}

func (l *lifecycle) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.did, want) {
		t.Errorf("got %q\nwant %q", l.did, want)
	}
}

func TestPartsStopInReverseOrderAfterTheirFarewells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifecycle
		ctx, cancel := context.WithCancel(t.Context())
		manager := l.part("manager")
		manager.BeforeStop = func(context.Context) error { l.note("manager says beforeStop"); return nil }
		time.AfterFunc(time.Minute, cancel)
		if err := l.run(t, ctx, l.part("runtime"), manager, l.part("source")); err != nil {
			t.Error(err)
		}
		l.expect(t, "source stopped", "manager says beforeStop", "manager stopped", "runtime stopped")
	})
}

func TestPart_EndsByItself_StopsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifecycle
		broken := Part{Name: "broken", Run: func(context.Context) error { return errors.New("out of paper") }}
		err := l.run(t, t.Context(), l.part("a"), broken, l.part("b"))
		if err == nil || !strings.Contains(err.Error(), "broken ended by itself: out of paper") {
			t.Errorf("got %v, want the part and its error named", err)
		}
		l.expect(t, "b stopped", "a stopped")
	})
}

func TestPart_EndsWithoutAnError_StopsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifecycle
		err := l.run(t, t.Context(), Part{Name: "lazy", Run: func(context.Context) error { return nil }})
		if err == nil || !strings.Contains(err.Error(), "lazy ended by itself: without an error") {
			t.Errorf("got %v, want the part named", err)
		}
	})
}

// A stop is bounded: a beforeStop gets half of the time, and a part that does not stop is
// left behind by name, after which the others still get their turn.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifecycle
		ctx, cancel := context.WithCancel(t.Context())
		talker := l.part("talker")
		talker.BeforeStop = func(ctx context.Context) error {
			begin := time.Now()
			<-ctx.Done()
			l.note(fmt.Sprintf("talker talked for %s", time.Since(begin)))
			return ctx.Err()
		}
		released := make(chan struct{})
		stuck := Part{Name: "stuck", Run: func(context.Context) error { <-released; return nil }}
		cancel()
		begin := time.Now()
		err := l.run(t, ctx, l.part("runtime"), stuck, talker)
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("stopping took %s, want the 10 s that it may take", took)
		}
		if !errors.Is(err, errTimeout) || !strings.Contains(err.Error(), "stuck: did not stop in time") {
			t.Errorf("got %v, want the stuck part named", err)
		}
		close(released)
		synctest.Wait()
		l.expect(t, "talker talked for 5s", "talker stopped", "runtime stopped")
	})
}

// settling is a log that lets each part that was started come to rest before the next line.
type settling struct{ slog.Handler }

func (settling) Enabled(context.Context, slog.Level) bool { return true }

func (settling) Handle(context.Context, slog.Record) error {
	synctest.Wait()
	return nil
}

// What ends in the moment of a stop is part of the stop, in whichever order the two are seen.
func TestPart_EndsDuringAStop_IsNoFailure(t *testing.T) {
	for range 50 { // each time a select has the choice
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			last := Part{Name: "last", Run: func(context.Context) error { return nil }}
			if err := RunParts(ctx, slog.New(settling{slog.DiscardHandler}), time.Second, []Part{last}); err != nil {
				t.Errorf("got %v from a stop", err)
			}
		})
	}
}

// A part that has ended is not named as left behind, also when another one has used up the time.
func TestPart_HasEnded_LeavesNothing(t *testing.T) {
	for range 50 { // each time a select has the choice
		synctest.Test(t, func(t *testing.T) {
			var l lifecycle
			released := make(chan struct{})
			defer close(released)
			broken := Part{Name: "broken", Run: func(context.Context) error { return errors.New("out of paper") }}
			stuck := Part{Name: "stuck", Run: func(context.Context) error { <-released; return nil }}
			err := l.run(t, t.Context(), broken, stuck)
			if err == nil || !strings.Contains(err.Error(), "stuck: did not stop in time") || strings.Contains(err.Error(), "broken: did not stop in time") {
				t.Fatalf("got %v, want the stuck part left behind, and not the broken one", err)
			}
		})
	}
}
