package agent

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/runtime/runtimefake"
	"github.com/statusd/statusd/source"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/worker"
)

// newTestRoster is a roster whose workers do not run: what it tells them has no effect.
func newTestRoster(t *testing.T) *roster {
	t.Helper()
	r := newRoster(pods.New(), source.FromAPI, source.FromFile)
	manager, err := status.New(status.Options{Pods: r.table})
	if err != nil {
		t.Fatal(err)
	}
	workers, err := worker.New(worker.Options{Runtime: runtimefake.New(), Status: reporter{manager, r}})
	if err != nil {
		t.Fatal(err)
	}
	r.manager, r.workers = manager, workers
	return r
}

func static(uid types.UID) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web-n", Namespace: "default", UID: uid,
		Annotations: map[string]string{source.SourceAnnotation: string(source.FromFile), source.HashAnnotation: string(uid)},
	}}
}

func (r *roster) say(op source.Op, pods ...*v1.Pod) {
	r.handle(source.Change{Origin: source.FromFile, Op: op, Pods: pods})
}

func (r *roster) knows(uid types.UID) bool {
	_, known := r.table.ByUID(uid)
	return known
}

func TestStaticPodStaysKnownUntilItsWorkerIsDone(t *testing.T) {
	r := newTestRoster(t)
	r.say(source.Set, static("a"))
	r.say(source.Remove, static("a"))
	if !r.knows("a") || !r.isLeaving("a") {
		t.Errorf("known %t, leaving %t while its worker ends it, want both: its last statuses go to its mirror", r.knows("a"), r.isLeaving("a"))
	}
	r.release(map[types.UID]bool{"a": true})
	if !r.isLeaving("a") {
		t.Error("not leaving any more though a worker still has it")
	}
	r.release(map[types.UID]bool{})
	if r.knows("a") || r.isLeaving("a") {
		t.Errorf("known %t, leaving %t after its worker was done, want neither", r.knows("a"), r.isLeaving("a"))
	}
}

func TestEditedStaticPodTakesThePlaceOfTheOldOne(t *testing.T) {
	r := newTestRoster(t)
	r.say(source.Set, static("a"))
	r.say(source.Remove, static("a"))
	r.say(source.Update, static("b"))
	if r.knows("a") || !r.knows("b") {
		t.Errorf("old known %t, new known %t: want the new one only, since both would write to one mirror", r.knows("a"), r.knows("b"))
	}
	if !r.isLeaving("a") {
		t.Error("the old one is not leaving: its mirror would go while it still runs")
	}
}

func TestStaticPodThatComesBackIsNotLeaving(t *testing.T) {
	r := newTestRoster(t)
	r.say(source.Set, static("a"))
	r.say(source.Remove, static("a"))
	r.say(source.Update, static("a"))
	r.release(map[types.UID]bool{})
	if r.isLeaving("a") || !r.knows("a") {
		t.Errorf("leaving %t, known %t after it came back, want a pod that stays", r.isLeaving("a"), r.knows("a"))
	}
}

func TestAllSourcesHaveSpokenOnce(t *testing.T) {
	r := newTestRoster(t)
	if r.hasSpoken(source.FromFile) {
		t.Error("ready after the first of two sources")
	}
	if r.hasSpoken(source.FromFile) {
		t.Error("ready because one source spoke twice")
	}
	if !r.hasSpoken(source.FromAPI) {
		t.Error("not ready after both sources have spoken")
	}
	if r.hasSpoken(source.FromAPI) {
		t.Error("ready a second time")
	}
}
