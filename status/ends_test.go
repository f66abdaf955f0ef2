package status

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// nextProcess is the process of the node that comes after another one, with the same server and journal. It has not run yet.
func nextProcess(t *testing.T, before *world, j Journal) *world {
	t.Helper()
	api := before.api
	w := newWorld(t, withJournal(j), func(o *Options) { o.Client, o.Pods = api, nil })
	w.api, w.table = api, w.manager.table
	handler := w.manager.EventHandler()
	api.OnStore(func(pod *v1.Pod) { handler.OnAdd(pod, false) })
	api.OnRemove(func(pod *v1.Pod) { handler.OnDelete(pod) })
	return w
}

// wantEnd fails if the API does not say that the pod has ended with an exit code.
func (w *world) wantEnd(pod *v1.Pod, phase v1.PodPhase, code int32) {
	w.Helper()
	got := w.api.Pod(pod).Status
	if exit, known := exitCode(&got); got.Phase != phase || !known || exit != code {
		w.Errorf("the API says %s and exit code %d (known: %v), want %s and %d", got.Phase, exit, known, phase, code)
	}
}

// The API server has the end of a pod, and is restored from a backup that does not. The process that has reported the end has
// ended, and no other program knows of it.
func TestEndThatTheAPIHasHad_SurvivesARestoreAndARestart(t *testing.T) {
	for name, next := range map[string]func(w *world, pod *v1.Pod){
		"no report": func(w *world, _ *v1.Pod) { w.run() },
		"TerminatePod before the first list": func(w *world, pod *v1.Pod) {
			must(w.manager.TerminatePod(pod))
			w.run()
		},
		"TerminatePod": func(w *world, pod *v1.Pod) {
			w.run()
			must(w.manager.TerminatePod(pod))
		},
		"TerminatePod of a pod without containers in its status": func(w *world, pod *v1.Pod) {
			w.run()
			bare := pod.DeepCopy()
			bare.Status = v1.PodStatus{}
			must(w.manager.TerminatePod(bare))
		},
		"two restarts": func(w *world, _ *v1.Pod) {
			w.run()
			time.Sleep(time.Minute)
			w.stop()
		},
	} {
		for disk, takes := range map[string]time.Duration{"fast disk": 0, "the API first": time.Second} {
			t.Run(name+", "+disk, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kept := newSlowDisk(takes)
					first := newEmbedder(t, withJournal(kept))
					first.run()
					pod := first.create("job", restartNever)
					first.report(pod, running(pod, true))
					backup := first.api.Backup()
					first.report(pod, ended(pod, 0))
					time.Sleep(time.Minute)
					first.wantEnd(pod, v1.PodSucceeded, 0)
					first.stop()
					first.api.Restore(backup)

					second := nextProcess(t, first, kept)
					next(second, first.api.Pod(pod))
					if name == "two restarts" {
						second.api.Restore(backup)
						second = nextProcess(t, second, kept)
						second.run()
					}
					time.Sleep(time.Minute)
					second.wantEnd(pod, v1.PodSucceeded, 0)
					second.wantNothingPending()
				})
			})
		}
	}
}

// That a pod may be deleted is remembered, too.
func TestFinishedPodThatIsDeletedAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		first := newEmbedder(t, withJournal(memory))
		first.run()
		pod := first.create("job", restartNever)
		first.report(pod, ended(pod, 0))
		must(first.manager.TerminatePod(pod))
		time.Sleep(time.Second)
		first.stop()
		second := nextProcess(t, first, memory)
		second.run()
		second.api.Change(pod, userDeletes)
		time.Sleep(time.Minute)
		if second.api.Pod(pod) != nil {
			t.Error("the finished pod is not deleted")
		}
		second.wantNothingLeft(memory)
	})
}

// The API server has an end before the disk takes it. The report returns then, and the journal has the end all the same.
func TestEndThatTheAPIHasFirst_IsWrittenAllTheSame(t *testing.T) {
	for name, setBad := range map[string]func(*slowDisk, *sickJournal, bool){
		"full":  func(_ *slowDisk, sick *sickJournal, bad bool) { sick.fails.Store(bad) },
		"hangs": func(d *slowDisk, _ *sickJournal, bad bool) { setHanging(d, bad) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := newSlowDisk(0)
				sick := &sickJournal{Journal: slow}
				w, pod := newWorld(t, withJournal(sick)).runWith("job", restartNever)
				w.report(pod, running(pod, true))
				setBad(slow, sick, true)
				w.manager.SetPodStatus(pod, ended(pod, 3))
				time.Sleep(time.Minute)
				w.wantEnd(pod, v1.PodFailed, 3)
				if len(slow.Journal.(*journal.Memory).Finals()) > 0 {
					t.Fatal("the bad disk has taken the end")
				}
				setBad(slow, sick, false)
				pass(time.Minute)
				if len(sick.Finals()) != 1 {
					t.Error("the journal does not have the end, although the disk is well")
				}
				w.wantNothingPending()
			})
		})
	}
}

// A full disk is tried with one of the ends that it has not taken. Once it takes that one, it gets all.
func TestFullDisk_IsTriedWithOneEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick := &sickJournal{Journal: journal.NewMemory()}
		w := newWorld(t, withJournal(sick))
		var pods []*v1.Pod
		for i := range 50 {
			pods = append(pods, w.create(fmt.Sprint("job-", i), restartNever))
		}
		w.run()
		sick.fails.Store(true)
		for _, pod := range pods {
			w.manager.SetPodStatus(pod, ended(pod, 0))
		}
		time.Sleep(time.Second)
		before := w.counter("statusd_journal_write_errors_total")
		pass(10 * time.Minute)
		if tries := w.counter("statusd_journal_write_errors_total") - before; tries < 10 || tries > 20 {
			t.Errorf("%v tries in ten minutes, want about one each 30 s for all pods", tries)
		}
		sick.fails.Store(false)
		pass(time.Minute)
		if kept := len(sick.Finals()); kept != len(pods) {
			t.Errorf("the journal has %d ends a minute after the disk has room again, want %d", kept, len(pods))
		}
	})
}

func setHanging(d *slowDisk, hangs bool) {
	if hangs {
		d.hangs = make(chan struct{})
	} else {
		close(d.hangs)
	}
}

// A node with many ended pods starts again: the ends are compared with the listed pods, which costs neither a request
// nor a write. The journal loses the ends of pods that were deleted meanwhile.
func TestEndedPodsCostNothingAtTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSlowDisk(0)
		first := newEmbedder(t, withJournal(disk))
		first.run()
		var pods []*v1.Pod
		for i := range 100 {
			pod := first.create(fmt.Sprint("job-", i), restartNever)
			first.set(pod, ended(pod, int32(i)))
			must(first.manager.TerminatePod(pod))
			pods = append(pods, pod)
		}
		time.Sleep(time.Second)
		first.stop()
		first.api.OnRemove(nil)
		for _, pod := range pods[:10] {
			first.api.Remove(pod.Namespace, pod.Name)
		}
		first.api.ForgetRequests()
		disk.writes.Store(0)
		second := nextProcess(t, first, disk)
		second.run()
		for _, pod := range pods[10:] { // as a provider does that reads its containers
			second.set(pod, ended(pod, int32(second.index(pod))))
			must(second.manager.TerminatePod(pod))
		}
		time.Sleep(time.Minute)
		if requests := len(second.api.Log()) - second.api.Count("VERSION"); requests > 2*10 {
			t.Errorf("%d requests, want at most two for each pod that is gone: %v", requests, second.api.Log())
		}
		if writes := disk.writes.Load(); writes > 10 {
			t.Errorf("%d writes to the journal, want one for each pod that is gone", writes)
		}
		if kept := disk.Finals(); len(kept) != 90 {
			t.Errorf("the journal has %d ends, want those of the 90 pods that are there", len(kept))
		}
		second.wantNothingPending()
	})
}

// index is the number in the name of a pod.
func (w *world) index(pod *v1.Pod) (n int) {
	fmt.Sscanf(pod.Name, "job-%d", &n)
	return n
}

// The life of a pod costs two writes to the journal: its end, and its removal.
func TestWritesOfALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSlowDisk(0)
		w := newEmbedder(t, withJournal(disk))
		w.run()
		pod := w.create("job", restartNever)
		w.report(pod, running(pod, true))
		w.report(pod, ended(pod, 0))
		w.api.Remove(pod.Namespace, pod.Name)
		time.Sleep(time.Minute)
		if got := disk.writes.Load(); got != 2 {
			t.Errorf("%d writes, want 2", got)
		}
		w.wantNothingLeft(disk.Journal.(*journal.Memory))
	})
}

// The end of a static pod is of one life of its UID: the journal does not bring it to the next.
func TestEndOfAStaticPod_IsNotBroughtToItsNextLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		first := newEmbedder(t, withJournal(memory))
		first.run()
		pod := newPod("static", staticPod)
		first.manager.ObservePod(pod)
		first.api.Put(mirrorOf(pod, "mirror"))
		first.report(pod, running(pod, true))
		first.report(pod, ended(pod, 1))
		must(first.manager.TerminatePod(pod))
		time.Sleep(time.Minute)
		first.stop()
		if kept := memory.Finals(); len(kept) > 0 {
			t.Errorf("the journal has %v of a static pod", kept)
		}
		second := nextProcess(t, first, memory)
		second.manager.ObservePod(pod)
		second.manager.ObservePod(second.api.Pod(pod))
		second.run()
		second.report(pod, running(pod, true))
		if got := second.api.Pod(pod).Status.Phase; got != v1.PodRunning {
			t.Errorf("the API says %s of the next life, want Running", got)
		}
	})
}

// A pod that is proven gone and comes back with a restore, as the table of the caller has it all the time, has not lost its end.
func TestEndOfAPodThatIsBackFromABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w, pod := newWorld(t, withJournal(memory)).runWith("job", restartNever)
		w.report(pod, running(pod, true))
		backup := w.api.Backup()
		w.report(pod, ended(pod, 0))
		w.api.OnStore(nil)
		w.api.Remove(pod.Namespace, pod.Name)
		w.set(pod, func() v1.PodStatus { s := ended(pod, 0); s.HostIP = "192.0.2.9"; return s }())
		time.Sleep(time.Minute)
		if kept := memory.Finals(); len(kept) > 0 {
			t.Errorf("the journal has %v of a pod that is gone", kept)
		}
		w.api.OnStore(w.deliver)
		w.api.Restore(backup)
		w.manager.ObservePod(w.api.Pod(pod))
		time.Sleep(time.Minute)
		w.wantEnd(pod, v1.PodSucceeded, 0)
		if len(memory.Finals()) != 1 {
			t.Error("the journal does not have the end of a pod that is there again")
		}
	})
}

// An end that was withheld until Safety knew better is withheld by the next process as before, and not taken back.
func TestWithheldEnd_IsNotTakenBackByARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		first := newEmbedder(t, withJournal(memory))
		first.run()
		pod := first.create("job", restartNever)
		first.report(pod, running(pod, true))
		backup := first.api.Backup()
		first.manager.SetPodStatus(pod, evicted(pod))
		time.Sleep(time.Minute)
		if podstatus.IsTerminal(first.api.Pod(pod).Status.Phase) {
			t.Fatal("the end is not withheld")
		}
		must(first.manager.TerminatePod(pod))
		time.Sleep(time.Minute)
		first.stop()
		first.api.Restore(backup)
		second := nextProcess(t, first, memory)
		second.run()
		time.Sleep(time.Minute)
		got := second.api.Pod(pod).Status
		if got.Phase != v1.PodFailed || got.Reason != "Evicted" {
			t.Errorf("the API says %s %s, want Failed Evicted", got.Phase, got.Reason)
		}
	})
}

// An upgrade: the earlier version has forgotten the ends that the API has. Reports of them return at once, and the journal has them from then on.
func TestEndThatTheAPIHasAtTheFirstReport_IsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newWorld(t, withJournal(memory))
		pod := w.create("job", restartNever, func(p *v1.Pod) { p.Status = ended(p, 0) })
		w.run()
		must(w.manager.TerminatePod(w.api.Pod(pod)))
		time.Sleep(time.Second)
		if len(memory.Finals()) != 1 {
			t.Error("the journal does not have the end")
		}
	})
}
