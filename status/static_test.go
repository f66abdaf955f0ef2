package status

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func staticPod(pod *v1.Pod) {
	pod.UID = types.UID(pod.Name + "-static")
	pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
}

func mirrorOf(static *v1.Pod, uid types.UID) *v1.Pod {
	mirror := static.DeepCopy()
	mirror.UID = uid
	mirror.Annotations = map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "hash"}
	mirror.Status = v1.PodStatus{Phase: v1.PodPending}
	return mirror
}

// createStatic makes a static pod with its mirror in the API.
func (w *world) createStatic(name string) (static, mirror *v1.Pod) {
	static = newPod(name, staticPod)
	w.table.Set(static)
	mirror = w.api.Put(mirrorOf(static, types.UID(name+"-mirror")))
	return static, mirror
}

func TestStaticPodIsWrittenToItsMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		static, mirror := w.createStatic("etcd")
		w.run()
		w.set(static, running(static, true))
		w.wantLog("written once", "PATCH ns/etcd")
		if got := w.api.Pod(mirror); got.UID != mirror.UID || got.Status.Phase != v1.PodRunning {
			t.Errorf("the mirror is %s %s", got.UID, got.Status.Phase)
		}
		byMirror, ok := w.manager.GetPodStatus(mirror.UID)
		if !ok || byMirror.Phase != v1.PodRunning {
			t.Errorf("GetPodStatus of the mirror's UID: %v, %v", byMirror.Phase, ok)
		}
	})
}

// A user copies the annotation of a static pod onto a pod of the API, as a backup tool does.
func TestAPodOfTheAPIThatClaimsToBeStaticIsReportedAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web", restartNever, func(pod *v1.Pod) {
			pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		})
		w.run()
		w.set(pod, running(pod, true))
		w.wantLog("written as any pod of the API", "PATCH ns/web")
		doomed := w.api.Pod(pod)
		deleting(doomed)
		w.api.Put(doomed)
		must(w.manager.TerminatePod(doomed))
		w.wantLog("finished", "PATCH ns/web", "DELETE ns/web")
	})
}

func TestStaticPodWaitsForItsMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		static := newPod("etcd", staticPod)
		w.table.Set(static)
		w.run()
		w.set(static, running(static, true))
		time.Sleep(time.Minute)
		w.wantLog("there is no mirror to write to")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.manager.Flush(ctx); err != nil {
			t.Errorf("Flush waits for a static pod without a mirror: %v", err)
		}
		w.api.Put(mirrorOf(static, "mirror-1"))
		w.wantLog("the mirror appears", "PATCH ns/etcd")
		w.wantNothingPending()
	})
}

// #137309: the mirror is recreated under a new UID. The static pod's status must neither
// be lost nor written to the wrong UID, and the new mirror gets it at once (M0c).
func TestMirrorChangesItsUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		static, _ := w.createStatic("etcd")
		w.run()
		w.set(static, running(static, true))
		w.wantLog("first mirror", "PATCH ns/etcd")
		w.api.OnStore(nil)
		second := w.api.Put(mirrorOf(static, "etcd-mirror-2")) // not yet known here
		w.set(static, running(static, false))
		w.wantLog("the write to the old UID is refused and looked into", "PATCH ns/etcd", "GET ns/etcd")
		if status, ok := w.manager.GetPodStatus(static.UID); !ok || status.Phase != v1.PodRunning {
			t.Fatal("the static pod's status was thrown away")
		}
		time.Sleep(time.Minute)
		w.api.OnStore(w.deliver)
		w.api.ForgetRequests()
		w.deliver(second.DeepCopy())
		w.wantLog("the new mirror is observed", "PATCH ns/etcd")
		got := w.api.Pod(second)
		if got.UID != "etcd-mirror-2" || got.Status.Phase != v1.PodRunning || isReady(&got.Status) {
			t.Errorf("the new mirror says %s, ready %v", got.Status.Phase, isReady(&got.Status))
		}
		w.wantNothingPending()
	})
}

func TestMirrorGoesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		static, mirror := w.createStatic("etcd")
		w.run()
		w.set(static, running(static, true))
		w.wantLog("first mirror", "PATCH ns/etcd")
		w.table.Remove(mirror)
		w.api.Remove(mirror.Namespace, mirror.Name)
		w.set(static, running(static, false))
		time.Sleep(time.Minute)
		w.wantLog("no mirror")
		w.api.Put(mirrorOf(static, "etcd-mirror-2"))
		w.wantLog("a new mirror", "PATCH ns/etcd")
		w.wantNothingPending()
	})
}

// M0d: a static pod may come back after it finished, under the same UID.
func TestFinishedIsStickyButForStaticPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ordinary := w.create("job", restartNever)
		static := newPod("etcd", staticPod)
		w.table.Set(static)
		for _, pod := range []*v1.Pod{ordinary, static} {
			must(w.manager.TerminatePod(pod))
			status, _ := w.manager.GetPodStatus(pod.UID)
			status.Message = "later"
			w.set(pod, status)
		}
		if !w.manager.cache.load(ordinary.UID).finished {
			t.Error("an ordinary pod is no longer finished after a later report")
		}
		if w.manager.cache.load(static.UID).finished {
			t.Error("a static pod is still finished after a later report")
		}
	})
}

// TerminatePod gives a static pod no terminal phase (K6), but its containers have ended.
func TestAStaticPodThatWasTerminatedWhileItRanRunsAgain(t *testing.T) {
	static := newPod("etcd", staticPod, restartNever)
	m := standalone(t, static)
	if _, err := m.SetPodStatus(static, running(static, true)); err != nil {
		t.Fatal(err)
	}
	if err := m.TerminatePod(static); err != nil {
		t.Fatal(err)
	}
	if _, err := m.SetPodStatus(static, running(static, true)); err != nil {
		t.Errorf("another life of the pod was refused: %v", err)
	}
	if got, _ := m.GetPodStatus(static.UID); len(got.ContainerStatuses) == 0 || got.ContainerStatuses[0].State.Running == nil {
		t.Errorf("the containers of the new life are %+v, want running", got.ContainerStatuses)
	}
}

// The mirror shows how an earlier life of the static pod ended; this one ends otherwise.
func TestMirrorShowsTheEndOfTheNewestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		static, mirror := w.createStatic("job")
		w.run()
		w.set(static, ended(static, 1))
		w.wantLog("it fails", "PATCH ns/job")
		w.manager.RemoveOrphanedStatuses(nil)
		w.set(static, ended(static, 0))
		w.wantLog("in its next life it succeeds", "PATCH ns/job")
		if got := w.api.Pod(mirror).Status.Phase; got != v1.PodSucceeded {
			t.Errorf("the mirror says %s", got)
		}
		w.wantNothingPending()
	})
}

// Another writer has ended the mirror while the end of the static pod is withheld.
func TestTheEndOfAStaticPodFollowsOnceItsContainersHaveStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w := newWorld(t, func(o *Options) { o.Safety = g })
		static, mirror := w.createStatic("job")
		w.run()
		w.set(static, ended(static, 0))
		w.api.Change(mirror, func(p *v1.Pod) { p.Status.Phase, p.Status.Reason = v1.PodFailed, "NodeLost" })
		time.Sleep(time.Second)
		if got := w.api.Pod(mirror).Status.Phase; got != v1.PodFailed {
			t.Errorf("the mirror says %s although a container could run, want Failed, as the other writer left it", got)
		}
		g.running.Store(false)
		time.Sleep(20 * time.Second)
		if got := w.api.Pod(mirror).Status; got.Phase != v1.PodSucceeded || got.Reason != "" {
			t.Errorf("the mirror says %s %s, want the end that the node has seen", got.Phase, got.Reason)
		}
		w.wantNothingPending()
	})
}

// Another writer has changed the mirror, which changes nothing of the manifest that the node runs.
func TestTheEndOfAStaticPodSpeaksForItsManifest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		static := newPod("job", staticPod)
		static.Generation = 1
		w.table.Set(static)
		changed := mirrorOf(static, "job-mirror")
		changed.Generation = 2
		mirror := w.api.Put(changed)
		w.run()
		status := ended(static, 0)
		status.Conditions = running(static, true).Conditions // as before the end
		w.set(static, status)
		w.wantLog("its end", "PATCH ns/job")
		for _, c := range w.api.Pod(mirror).Status.Conditions {
			if c.Type == v1.PodReady && (c.Status != v1.ConditionFalse || c.ObservedGeneration != 1) {
				t.Errorf("Ready is %s for generation %d, want False for 1", c.Status, c.ObservedGeneration)
			}
		}
	})
}
