package kubeletside

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/internal/sidetest"
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
	*sidetest.Watched[*Side, audit.Kubelet]
}

// watchSide runs a side until the test ends. It looks as often as it may, so that each wait below is for a state.
func watchSide(t *testing.T, o Options) *watched {
	t.Helper()
	if o.Pace == 0 {
		o.Pace, o.Least = 20*time.Millisecond, 10*time.Millisecond
	}
	return &watched{sidetest.Watch(t, func(changed func(types.UID)) (*Side, error) {
		o.Changed = changed
		return New(o)
	})}
}

// look waits for the answer to a question that was asked after now.
func (w *watched) look() {
	after := time.Now()
	for w.Side.Refresh(); w.Side.Facts().KubeletAnswer.At.Before(after); {
		time.Sleep(time.Millisecond)
	}
}

func known(k audit.Kubelet) bool { return k.KubeletAnswer.Known() }

func silent(k audit.Kubelet) bool { return !known(k) }

func running(k audit.Kubelet, uid types.UID) bool {
	return known(k) && k.KubeletPods[uid].Pod != nil && k.KubeletPods[uid].Pod.Status.Phase == v1.PodRunning
}

// kubeletCases is what must hold of the side whatever the kubelet is, and however it is asked.
func kubeletCases(t *testing.T, begin func(t *testing.T) control) {
	for name, run := range map[string]func(t *testing.T, c control, w *watched){
		"pods come and go": func(t *testing.T, c control, w *watched) {
			first, second := c.put("first"), c.put("second")
			facts := w.Await("two pods that run", func(k audit.Kubelet) bool { return running(k, first) && running(k, second) })
			if got := facts.KubeletPods[first]; got.Pod.Name != "first" || got.Pod.UID != first || got.At.IsZero() {
				t.Errorf("got %+v", got)
			}
			if facts.KubeletStatuses != c.own() || facts.KubeletAnswer.From == "" || facts.KubeletAnswer.Since.IsZero() {
				t.Errorf("got %+v, own statuses %t, want %t", facts.KubeletAnswer, facts.KubeletStatuses, c.own())
			}
			c.remove(first, "first")
			w.Await("one pod", func(k audit.Kubelet) bool { return known(k) && k.KubeletPods[first].Pod == nil && running(k, second) })
			if facts.KubeletPods[first].Pod == nil {
				t.Error("the facts that were handed out have changed")
			}
			c.remove(second, "second")
			w.Await("no pod", func(k audit.Kubelet) bool { return known(k) && k.KubeletPods[second].Pod == nil })
		},
		"frozen": func(t *testing.T, c control, w *watched) {
			uid := c.put("frozen")
			w.Await("a pod", func(k audit.Kubelet) bool { return running(k, uid) })
			c.freeze()
			facts := w.Await("silence", silent)
			if facts.KubeletPods[uid].Pod == nil || facts.KubeletAnswer.Silent.IsZero() || facts.KubeletAnswer.At.IsZero() || !facts.KubeletAnswer.Since.IsZero() {
				t.Errorf("got %+v, want what it said last, and since when it is silent", facts)
			}
			c.thaw()
			w.Await("an answer", func(k audit.Kubelet) bool { return running(k, uid) })
			c.remove(uid, "frozen")
		},
		"killed and started again": func(t *testing.T, c control, w *watched) {
			uid := c.put("killed")
			w.Await("a pod", func(k audit.Kubelet) bool { return running(k, uid) })
			c.kill()
			before := w.Await("silence", silent)
			if before.KubeletPods[uid].Pod == nil {
				t.Errorf("got %+v, want what it said last", before)
			}
			c.start()
			after := w.Await("an answer", func(k audit.Kubelet) bool { return running(k, uid) })
			if !after.KubeletAnswer.Since.After(before.KubeletAnswer.Silent) || !after.KubeletAnswer.Silent.IsZero() {
				t.Errorf("got %+v after %+v, want since when it answers", after.KubeletAnswer, before.KubeletAnswer)
			}
			c.remove(uid, "killed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin(t)
			w := watchSide(t, c.options())
			w.Await("the first answer", known)
			run(t, c, w)
		})
	}
}
