package kubeletside

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/observe"
)

// control is a kubelet that can be disturbed.
type control interface {
	// options say how to ask it.
	options() Options
	// own reports whether it serves its own statuses.
	own() bool
	// put makes a pod run and returns its UID; remove removes it.
	put(name string) types.UID
	remove(uid types.UID, name string)
	freeze()
	thaw()
	kill()
	start()
}

// watched is a side under test.
type watched struct {
	t       *testing.T
	side    *Side
	changed chan struct{}
}

// watchSide runs a side until the test ends. It looks as often as it may, so that each wait below is for a state.
func watchSide(t *testing.T, o Options) *watched {
	t.Helper()
	w := &watched{t: t, changed: make(chan struct{}, 1)}
	o.Changed = func(types.UID) { wake.Up(w.changed) }
	if o.Pace == 0 {
		o.Pace, o.Least = 20*time.Millisecond, 10*time.Millisecond
	}
	var err error
	if w.side, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.side.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	return w
}

// await waits until the facts are as wanted.
func (w *watched) await(what string, wanted func(observe.Kubelet) bool) observe.Kubelet {
	w.t.Helper()
	for {
		facts := w.side.Facts()
		if wanted(facts) {
			return facts
		}
		select {
		case <-w.changed:
		case <-w.t.Context().Done():
			w.t.Fatalf("%s: not seen, last %+v", what, facts)
		}
	}
}

// look waits for the answer to a question that was asked after now.
func (w *watched) look() {
	after := time.Now()
	for w.side.Refresh(); w.side.Facts().KubeletAnswer.At.Before(after); {
		time.Sleep(time.Millisecond)
	}
}

func known(k observe.Kubelet) bool { return k.KubeletAnswer.Known() }

func silent(k observe.Kubelet) bool { return !known(k) }

func running(k observe.Kubelet, uid types.UID) bool {
	return known(k) && k.KubeletPods[uid].Pod != nil && k.KubeletPods[uid].Pod.Status.Phase == v1.PodRunning
}

// kubeletCases is what must hold of the side whatever the kubelet is, and however it is asked.
func kubeletCases(t *testing.T, begin func(t *testing.T) control) {
	for name, run := range map[string]func(t *testing.T, c control, w *watched){
		"pods come and go": func(t *testing.T, c control, w *watched) {
			first, second := c.put("first"), c.put("second")
			facts := w.await("two pods that run", func(k observe.Kubelet) bool { return running(k, first) && running(k, second) })
			if got := facts.KubeletPods[first]; got.Pod.Name != "first" || got.Pod.UID != first || got.At.IsZero() {
				t.Errorf("got %+v", got)
			}
			if facts.KubeletStatuses != c.own() || facts.KubeletAnswer.From == "" || facts.KubeletAnswer.Since.IsZero() {
				t.Errorf("got %+v, own statuses %t, want %t", facts.KubeletAnswer, facts.KubeletStatuses, c.own())
			}
			c.remove(first, "first")
			w.await("one pod", func(k observe.Kubelet) bool { return known(k) && k.KubeletPods[first].Pod == nil && running(k, second) })
			if facts.KubeletPods[first].Pod == nil {
				t.Error("the facts that were handed out have changed")
			}
			c.remove(second, "second")
			w.await("no pod", func(k observe.Kubelet) bool { return known(k) && k.KubeletPods[second].Pod == nil })
		},
		"frozen": func(t *testing.T, c control, w *watched) {
			uid := c.put("frozen")
			w.await("a pod", func(k observe.Kubelet) bool { return running(k, uid) })
			c.freeze()
			facts := w.await("silence", silent)
			if facts.KubeletPods[uid].Pod == nil || facts.KubeletAnswer.Silent.IsZero() || facts.KubeletAnswer.At.IsZero() || !facts.KubeletAnswer.Since.IsZero() {
				t.Errorf("got %+v, want what it said last, and since when it is silent", facts)
			}
			c.thaw()
			w.await("an answer", func(k observe.Kubelet) bool { return running(k, uid) })
			c.remove(uid, "frozen")
		},
		"killed and started again": func(t *testing.T, c control, w *watched) {
			uid := c.put("killed")
			w.await("a pod", func(k observe.Kubelet) bool { return running(k, uid) })
			c.kill()
			before := w.await("silence", silent)
			if before.KubeletPods[uid].Pod == nil {
				t.Errorf("got %+v, want what it said last", before)
			}
			c.start()
			after := w.await("an answer", func(k observe.Kubelet) bool { return running(k, uid) })
			if !after.KubeletAnswer.Since.After(before.KubeletAnswer.Silent) || !after.KubeletAnswer.Silent.IsZero() {
				t.Errorf("got %+v after %+v, want since when it answers", after.KubeletAnswer, before.KubeletAnswer)
			}
			c.remove(uid, "killed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin(t)
			w := watchSide(t, c.options())
			w.await("the first answer", known)
			run(t, c, w)
		})
	}
}
