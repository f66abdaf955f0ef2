package agent

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// newTestDispatcher is a dispatcher whose workers do not run: what it tells them has no effect.
func newTestDispatcher(t *testing.T) *dispatcher {
	t.Helper()
	r := newDispatcher(pods.New(), source.FromAPI, source.FromFile)
	manager, err := status.New(status.Options{Pods: r.table})
	if err != nil {
		t.Fatal(err)
	}
	workers, err := worker.New(worker.Options{Runtime: runtimefake.New(), Status: reporter{manager, manager.Resizes()}, OnForgotten: r.release})
	if err != nil {
		t.Fatal(err)
	}
	r.manager, r.workers = manager, workers
	return r
}

func static(uid types.UID) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web-n", Namespace: "default", UID: uid,
		Annotations: map[string]string{podstatus.SourceAnnotation: string(source.FromFile), podstatus.HashAnnotation: string(uid)},
	}}
}

func (r *dispatcher) say(op source.Op, pods ...*v1.Pod) {
	r.handle(source.Change{Origin: source.FromFile, Op: op, Pods: pods})
}

func (r *dispatcher) knows(uid types.UID) bool {
	_, known := r.table.ByUID(uid)
	return known
}

func TestStaticPodStaysKnownUntilItsWorkerIsDone(t *testing.T) {
	r := newTestDispatcher(t)
	r.say(source.Set, static("a"))
	r.say(source.Remove, static("a"))
	if !r.knows("a") || !r.isLeaving("a") {
		t.Errorf("known %t, leaving %t while its worker ends it, want both: its last statuses go to its mirror", r.knows("a"), r.isLeaving("a"))
	}
	r.release("b")
	if !r.isLeaving("a") {
		t.Error("not leaving any more though a worker still has it")
	}
	r.release("a")
	if r.knows("a") || r.isLeaving("a") {
		t.Errorf("known %t, leaving %t after its worker was done, want neither", r.knows("a"), r.isLeaving("a"))
	}
}

func TestEditedStaticPodLeavesTheMirrorToTheOldOneUntilThatIsDone(t *testing.T) {
	r := newTestDispatcher(t)
	r.say(source.Set, static("a"))
	mirror := static("a")
	mirror.UID, mirror.ResourceVersion = "mirror", "1"
	mirror.Annotations[v1.MirrorPodAnnotationKey] = "a"
	r.handle(source.Change{Origin: source.FromAPI, Op: source.Set, Pods: []*v1.Pod{mirror}})
	r.say(source.Remove, static("a"))
	r.say(source.Update, static("b"))
	owners := func() (list []types.UID) {
		for _, uid := range []types.UID{"a", "b"} {
			if _, ok := r.table.MirrorOf(static(uid)); ok && r.knows(uid) {
				list = append(list, uid)
			}
		}
		return list
	}
	if got := owners(); !slices.Equal(got, []types.UID{"a"}) {
		t.Errorf("pods that write to the mirror of a: %v, want the old one only, whose last statuses it shows", got)
	}
	if !r.isLeaving("a") {
		t.Error("the old one is not leaving: its mirror would go while it still runs")
	}
	r.release("a")
	if got := owners(); len(got) > 0 {
		t.Errorf("pods that write to the mirror of a once a is done: %v, want none: it shows how a ended until it is replaced", got)
	}
	mirror = static("b")
	mirror.UID, mirror.ResourceVersion = "mirror of b", "2"
	mirror.Annotations[v1.MirrorPodAnnotationKey] = "b"
	r.handle(source.Change{Origin: source.FromAPI, Op: source.Set, Pods: []*v1.Pod{mirror}})
	if got := owners(); !slices.Equal(got, []types.UID{"b"}) {
		t.Errorf("pods that write to the mirror of b: %v, want b only", got)
	}
}

func TestStaticPodThatComesBackIsNotLeaving(t *testing.T) {
	r := newTestDispatcher(t)
	r.say(source.Set, static("a"))
	r.say(source.Remove, static("a"))
	r.say(source.Update, static("a"))
	r.release("a")
	if r.isLeaving("a") || !r.knows("a") {
		t.Errorf("leaving %t, known %t after it came back, want a pod that stays", r.isLeaving("a"), r.knows("a"))
	}
}

func TestAllSourcesHaveSpokenOnce(t *testing.T) {
	r := newTestDispatcher(t)
	if r.hasSynced(source.FromFile) {
		t.Error("ready after the first of two sources")
	}
	if r.hasSynced(source.FromFile) {
		t.Error("ready because one source spoke twice")
	}
	if !r.hasSynced(source.FromAPI) {
		t.Error("not ready after both sources have spoken")
	}
	if r.hasSynced(source.FromAPI) {
		t.Error("ready a second time")
	}
}

func TestStaticPodRemembersWhatItsMirrorSays(t *testing.T) {
	ready := v1.PodStatus{
		Phase:             v1.PodRunning,
		ContainerStatuses: []v1.ContainerStatus{{Name: "main", ContainerID: "process://1", Ready: true}},
		Conditions:        []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: "example.com/gate", Status: v1.ConditionTrue}},
	}
	ended := v1.PodStatus{Phase: v1.PodSucceeded}
	for name, c := range map[string]struct {
		shadows   types.UID // the static pod behind the mirror
		status    v1.PodStatus
		inherited bool
	}{
		"its mirror":                     {"a", ready, true},
		"the mirror of an older version": {"old", ready, false},
		"an end":                         {"a", ended, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestDispatcher(t)
			mirror := static(c.shadows)
			mirror.UID, mirror.Status = "mirror", c.status
			mirror.Annotations[v1.MirrorPodAnnotationKey] = string(c.shadows)
			r.handle(source.Change{Origin: source.FromAPI, Op: source.Set, Pods: []*v1.Pod{mirror}})
			pod := static("a")
			got := r.withMirrorStatus(pod)
			if remembered := got.Status.Phase != ""; remembered != c.inherited {
				t.Fatalf("remembered %t, want %t: got status %+v", remembered, c.inherited, got.Status)
			}
			if pod.Status.Phase != "" || len(mirror.Status.Conditions) != len(c.status.Conditions) {
				t.Error("what the sources have handed over was written to")
			}
			if !c.inherited {
				return
			}
			if got.UID != "a" || !got.Status.ContainerStatuses[0].Ready {
				t.Errorf("got UID %s, containers %+v, want the static pod with its ready container", got.UID, got.Status.ContainerStatuses)
			}
			if conditions := got.Status.Conditions; len(conditions) != 1 || conditions[0].Type != v1.PodReady {
				t.Errorf("got conditions %+v, want those of the node only: others change theirs any time", conditions)
			}
		})
	}
}
