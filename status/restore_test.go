package status

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/statustest"
)

// restored is a node with a ready pod whose server has been restored from a backup in which
// the pod was not ready. The watch is what the caller sets before.
func restored(t *testing.T, before func(*world)) (*world, *v1.Pod) {
	w, pod := newWorld(t).runWith("web")
	w.report(pod, running(pod, false))
	b := w.api.Backup()
	for i := range 5 { // the versions of the backup will be far behind
		w.report(pod, running(pod, i%2 == 0))
	}
	w.wantNothingPending()
	before(w)
	w.api.Restore(b)
	synctest.Wait()
	w.api.ForgetRequests()
	return w, pod
}

// runWithMany runs with many pods, which are made before.
func (w *world) runWithMany(n int) (*world, []*v1.Pod) {
	w.Helper()
	var all []*v1.Pod
	for i := range n {
		all = append(all, w.create(fmt.Sprint("pod-", i)))
	}
	w.run()
	return w, all
}

// wantAgreement fails if the API's pod does not say what the manager says.
func (w *world) wantAgreement(pod *v1.Pod) {
	w.Helper()
	synctest.Wait()
	status, _ := w.manager.GetPodStatus(pod.UID)
	api := w.api.Pod(pod)
	if api == nil {
		w.Errorf("the API has no pod %s", pod.Name)
		return
	}
	merged := podrules.Merge(pod, &api.Status, &status, false, time.Now())
	if patch, err := podrules.Patch(api.UID, &api.Status, &merged); err != nil || patch != nil {
		w.Errorf("the API's pod %s still lacks %s, %v", pod.Name, patch, err)
	}
}

// Invariant 11, heals after a restore: the versions of the server have gone back.
func TestRestoreFromABackupHeals(t *testing.T) {
	for name, watch := range map[string]func(*world){
		"the watch lists again": func(*world) {},
		"only the table hears of it": func(w *world) {
			w.api.OnStore(func(pod *v1.Pod) { w.table.Set(pod) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := restored(t, watch)
				time.Sleep(45 * time.Second)
				w.wantAgreement(pod)
				w.wantLog("one look, one write", "GET ns/web", "PATCH ns/web")
				w.wantNothingPending()
				time.Sleep(time.Hour)
				w.wantLog("and peace from then on")
				if fights := w.manager.Fights(); len(fights) > 0 {
					t.Errorf("a fight with itself: %+v", fights)
				}
			})
		})
	}
}

// A report that happens to say what the server had before it was restored must not pass for
// delivered.
func TestRestoreSwallowsNoWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.report(pod, running(pod, true))
		b := w.api.Backup() // ready
		w.report(pod, running(pod, false))
		w.api.Restore(b)
		// The node's newest word is "not ready", as it was before the restore.
		w.set(pod, running(pod, true))
		w.set(pod, running(pod, false))
		time.Sleep(45 * time.Second)
		w.wantAgreement(pod)
	})
}

// The answer to an own write is the newest truth, whatever its version; a copy that the watch
// had brought before the restore is not.
func TestWritesAfterARestoreAreDifferencesToTheirAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := restored(t, func(w *world) { w.api.OnStore(nil) }) // the watch hangs
		for i := range 6 {
			w.set(pod, running(pod, i%2 != 0))
			time.Sleep(time.Second)
			w.wantAgreement(pod)
		}
		if got := w.api.Count("PATCH"); got > 8 {
			t.Errorf("%d writes for six changes, want one for each and two to find out", got)
		}
		if fights := w.manager.Fights(); len(fights) > 0 {
			t.Errorf("a fight with itself: %+v", fights)
		}
	})
}

// A watch that stays behind costs a look now and then, and no writes.
func TestWatchThatHangsCostsFewLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.report(pod, running(pod, false))
		w.api.OnStore(nil)
		w.report(pod, running(pod, true))
		w.api.ForgetRequests()
		pass(time.Hour)
		if got := w.api.Count("GET"); got < 1 || got > 12 {
			t.Errorf("%d looks in an hour, want a few, further and further apart", got)
		}
		if got := w.api.Count("PATCH"); got > 0 {
			t.Errorf("%d writes, want none: the API says what it should", got)
		}
	})
}

// A watch that falls minutes behind a burst, as on a node that starts a thousand pods at once, costs a few lists for all
// pods and not a read for each.
func TestWatchThatLagsBehindABurstCostsFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := newWorld(t).runWithMany(100)
		var late []*v1.Pod
		w.api.OnStore(func(pod *v1.Pod) { late = append(late, pod) })
		for i := range 4 {
			for _, pod := range all {
				w.report(pod, running(pod, i%2 == 1))
			}
		}
		w.api.ForgetRequests()
		for _, pod := range late {
			time.Sleep(time.Second)
			w.deliver(pod)
		}
		pass(time.Hour)
		if got := w.api.Count("GET"); got > readAlone {
			t.Errorf("%d pods were read by themselves", got)
		}
		if got := w.api.Lists(); got < 1 || got > 20 {
			t.Errorf("%d lists in the seven minutes that the watch was behind", got)
		}
		if got := w.api.Count("PATCH"); got > 0 {
			t.Errorf("%d writes, want none: the API says what it should", got)
		}
		for _, pod := range all {
			w.wantAgreement(pod)
		}
	})
}

// The server is restored while the watch hangs for many pods, and others have brought its versions beyond those of the
// backup: only the pods themselves show it. A list that fails or hangs does not keep them from being read.
func TestRestoreBehindAWatchThatHangs_IsFoundForManyPods(t *testing.T) {
	for name, fault := range map[string]statustest.Fault{
		"the list shows it": nil,
		"no list succeeds":  statustest.On("LIST", statustest.ErrRefused),
		"each list hangs": func(ctx context.Context, r statustest.Request) error {
			if r.Verb == "LIST" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, all := newWorld(t).runWithMany(100)
				w.api.SetFault(fault)
				backup := w.api.Backup()
				w.api.OnStore(nil)
				for _, pod := range all {
					w.report(pod, running(pod, true))
				}
				w.api.Restore(backup)
				for i := range 2 * len(all) {
					w.api.Put(newPod(fmt.Sprint("other-", i), func(p *v1.Pod) { p.Spec.NodeName = "elsewhere" }))
				}
				time.Sleep(restoredWithin)
				for _, pod := range all {
					w.wantAgreement(pod)
				}
			})
		})
	}
}

// A watch that has hung for long lists again after a restore. What it brings is the very copy that it had before, and
// others have brought the server's versions to where they were.
func TestWatchThatHung_BringsTheRestoredPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.report(pod, running(pod, false))
		backup := w.api.Backup()
		w.api.OnStore(nil)
		w.set(pod, running(pod, true))
		time.Sleep(time.Hour)
		w.api.Restore(backup)
		for i := range 5 {
			w.api.Put(newPod(fmt.Sprint("other-", i), func(p *v1.Pod) { p.Spec.NodeName = "elsewhere" }))
		}
		w.manager.ObservePod(w.api.Pod(pod))
		time.Sleep(restoredWithin)
		w.wantAgreement(pod)
	})
}

// Many writes that are in flight when the server is found to have been restored have all pods
// read once, not once for each of them.
func TestRestoreHasEachPodReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relists := 0
		w := newWorld(t, func(o *Options) { o.HistoryChanged = func() { relists++ } })
		var all []*v1.Pod
		for i := range 20 {
			all = append(all, w.create(fmt.Sprint("pod-", i)))
		}
		w.run()
		var b statustest.Backup
		for i := range 4 {
			for _, pod := range all {
				w.set(pod, running(pod, i%2 == 0))
			}
			synctest.Wait()
			if i == 1 {
				b = w.api.Backup()
			}
		}
		w.api.OnStore(nil)
		w.api.Restore(b)
		w.api.ForgetRequests()
		w.api.SetLatency(10 * time.Second)
		for _, pod := range all[:10] { // each answer comes when the reads after the one before are over
			w.set(pod, running(pod, true))
			time.Sleep(time.Second)
		}
		w.api.SetLatency(10 * time.Millisecond)
		time.Sleep(time.Minute)
		for _, pod := range all {
			w.wantAgreement(pod)
		}
		if relists != 1 {
			t.Errorf("the caller was asked %d times to list its pods again, want once", relists)
		}
		if got := w.api.Count("GET"); got > 25 {
			t.Errorf("%d reads of 20 pods", got)
		}
	})
}

// A watch that goes on from a version which the restored server has not reached is silent, and
// the node may have nothing to report.
func TestRestoreIsNoticedWithoutWatchAndReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New().Client()
		w := newWorld(t, func(o *Options) { o.Client = api })
		w.api = api.Server
		w.api.OnStore(w.deliver)
		var all []*v1.Pod
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, w.create(name))
		}
		w.run()
		var b statustest.Backup
		for i := range 5 {
			for _, pod := range all {
				w.set(pod, running(pod, i%2 == 0))
			}
			synctest.Wait()
			if i == 1 {
				b = w.api.Backup()
			}
		}
		w.api.OnStore(nil)
		w.api.Restore(b)
		w.api.ForgetRequests()
		time.Sleep(time.Minute + time.Second)
		for _, pod := range all {
			w.wantAgreement(pod)
		}
		if reads, writes := w.api.Count("GET"), w.api.Count("PATCH"); reads != 3 || writes != 3 {
			t.Errorf("%d reads and %d writes, want one of each for a pod", reads, writes)
		}
		w.wantNothingPending()
		w.api.ForgetRequests()
		pass(time.Hour)
		if log := w.api.Log(); len(log) != w.api.Count("VERSION") || len(log) > 60 {
			t.Errorf("%d requests in an hour of peace, %d of them for the version", len(log), w.api.Count("VERSION"))
		}
	})
}

// The restored server may have passed the newest version of the node's pods before it is asked, since the rest of the cluster writes too.
func TestRestoreIsNoticedOnceTheServerHasPassedThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New().Client()
		w := newWorld(t, func(o *Options) { o.Client = api })
		w.api = api.Server
		w.api.OnStore(w.deliver)
		pod, other := w.create("web"), w.create("other")
		w.run()
		w.set(pod, running(pod, true))
		synctest.Wait()
		b := w.api.Backup()
		w.set(pod, running(pod, false))
		synctest.Wait()
		w.api.OnStore(nil)
		write := func(times int) {
			for range times {
				w.api.Change(other, func(pod *v1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "number", pod.ResourceVersion) })
			}
		}
		write(100)
		time.Sleep(time.Minute + time.Second) // the manager asks for the version
		w.api.Restore(b)
		write(50)
		time.Sleep(time.Minute + time.Second)
		w.wantAgreement(pod)
		w.wantReady(pod, false)
	})
}

// While versions are seen to grow, nothing is asked.
func TestVersionIsNotAskedForWhileItIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New().Client()
		w := newWorld(t, func(o *Options) { o.Client = api })
		w.api = api.Server
		w.api.OnStore(w.deliver)
		pod := w.create("web")
		w.run()
		for i := range 60 {
			w.set(pod, running(pod, i%2 == 0))
			time.Sleep(5 * time.Second)
		}
		if got := w.api.Count("VERSION"); got > 0 {
			t.Errorf("asked %d times for the version", got)
		}
	})
}

// interruptedAPI lets something happen between a write and the arrival of its answer.
type interruptedAPI struct {
	*statustest.Server
	between func()
}

func (f *interruptedAPI) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	answer, err := f.Server.PatchStatus(ctx, namespace, name, patch)
	if between := f.between; between != nil {
		f.between = nil
		between()
	}
	return answer, err
}

// Another writer's change that is seen while a write is in flight is looked at afterwards.
func TestChangeObservedDuringAWriteIsRepairedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		interrupted := &interruptedAPI{Server: statustest.New()}
		w := newWorld(t, func(o *Options) { o.Client, o.ResyncPeriod = interrupted, 24*time.Hour })
		w.api = interrupted.Server
		w.api.OnStore(w.deliver)
		pod := w.create("web")
		w.run()
		interrupted.between = func() { drift(w, pod) }
		w.set(pod, running(pod, true))
		time.Sleep(time.Minute)
		w.wantAgreement(pod)
		w.wantLog("the change, and its repair", "PATCH ns/web", "PATCH ns/web")
	})
}

// Of the base and the watch's copy only the base was forgotten. The copy is what a second restore of the
// same backup shows once more, and must count then.
func TestASecondRestoreOfTheSameBackupHeals(t *testing.T) {
	for name, before := range map[string]func(*world){
		"the node reports nothing":     func(*world) {},
		"and its watch brings no news": func(w *world) { w.api.OnStore(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := newWorld(t).runWith("web")
				backup := w.api.Backup()
				w.report(pod, running(pod, true))
				w.api.Restore(backup) // which the watch shows
				before(w)
				time.Sleep(restoredWithin)
				w.wantAgreement(pod)
				w.api.Restore(backup)
				time.Sleep(restoredWithin)
				w.wantAgreement(pod)
				w.wantNothingPending()
			})
		})
	}
}

// What a turn finds in the cache shows nothing of the server, and keeps it from being asked for its version
// no longer than silence does.
func TestTurnsWithoutARequestDoNotStandForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New().Client()
		w := newWorld(t, func(o *Options) { o.Client = api })
		w.api = api.Server
		w.api.OnStore(w.deliver)
		pod := w.create("web")
		w.run()
		backup := w.api.Backup()
		w.report(pod, running(pod, true))
		w.api.OnStore(nil)
		w.api.Restore(backup)
		for range 4 * int(time.Minute/time.Second) {
			w.manager.engine.changed(turnRequest{uid: pod.UID, urgency: background, at: time.Now()})
			time.Sleep(time.Second)
		}
		w.wantAgreement(pod)
	})
}

// Twenty managers of one process share the reads of the version, in peace and in an outage, and each still
// notices a restore.
func TestManagersShareVersionReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New().Client()
		versions := NewVersions(api, 0)
		var worlds []*world
		for i := range 20 {
			w := newWorld(t, func(o *Options) { o.Client, o.Versions = api, versions })
			w.api = api.Server
			pod := w.create(fmt.Sprint("pod-", i))
			w.manager.ObservePod(pod)
			time.Sleep(700 * time.Millisecond) // they do not start at once
			w.run()
			worlds = append(worlds, w)
		}
		backup := api.Backup()
		for i, w := range worlds {
			pod, _ := w.table.ByUID(types.UID(fmt.Sprintf("pod-%d-uid", i)))
			w.set(pod, running(pod, true))
			time.Sleep(300 * time.Millisecond)
		}
		api.ForgetRequests()
		time.Sleep(time.Hour)
		if got := api.Count("VERSION"); got < 55 || got > 61 {
			t.Errorf("%d reads of the version in an hour, want one a minute for all managers", got)
		}
		api.SetFault(statustest.On("VERSION", statustest.ErrRefused))
		api.ForgetRequests()
		time.Sleep(time.Hour)
		if got := api.Count("VERSION"); got > 61 {
			t.Errorf("%d reads of the version in an hour of outage", got)
		}
		api.SetFault(nil)
		api.Restore(backup)
		pass(time.Minute + time.Second)
		for _, pod := range api.Pods() {
			if pod.Status.Phase != v1.PodRunning {
				t.Errorf("%s is %s a minute after the restore", pod.Name, pod.Status.Phase)
			}
		}
		for _, w := range worlds {
			w.stop()
		}
	})
}

// A turn that was planned before the server's history changed, and ends after it, does not stand for the read
// of the pod that the change asks for.
func TestTurnPlannedBeforeARestore_LeavesTheReadDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.report(pod, running(pod, true))
		planned, _, ok := w.manager.newPlan(pod.UID, time.Now())
		if !ok {
			t.Fatal("no plan for the pod")
		}
		w.manager.cache.distrust(1, "")
		w.manager.cache.accept(planned, planned.base, false)
		if next, _, _ := w.manager.newPlan(pod.UID, time.Now()); !next.look {
			t.Error("the next turn does not read the pod")
		}
	})
}
