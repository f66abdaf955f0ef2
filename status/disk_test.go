package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// slowDisk is a journal on a disk that makes one write at a time, and takes its time for each or hangs.
type slowDisk struct {
	Journal
	busy   chan struct{} // of capacity 1
	takes  atomic.Int64  // time.Duration
	hangs  chan struct{} // until it is closed
	writes atomic.Int64
	// retains, if set, is waited for before pods are removed that are not to be kept.
	retains chan struct{}
}

func (d *slowDisk) RetainPods(keep func(types.UID) bool) (int, error) {
	if d.retains != nil {
		<-d.retains
	}
	return d.Journal.RetainPods(keep)
}

func newSlowDisk(takes time.Duration) *slowDisk {
	d := &slowDisk{Journal: journal.NewMemory(), busy: make(chan struct{}, 1)}
	d.takes.Store(int64(takes))
	return d
}

func (d *slowDisk) write(write func() error) error {
	d.busy <- struct{}{}
	defer func() { <-d.busy }()
	d.writes.Add(1)
	if d.hangs != nil {
		<-d.hangs
	}
	time.Sleep(time.Duration(d.takes.Load()))
	return write()
}

func (d *slowDisk) SetFinal(uid types.UID, final podstatus.Final) error {
	return d.write(func() error { return d.Journal.SetFinal(uid, final) })
}

func (d *slowDisk) RemovePod(uid types.UID) error {
	return d.write(func() error { return d.Journal.RemovePod(uid) })
}

func (d *slowDisk) RecordTermination(uid types.UID, id string, how v1.ContainerStateTerminated) error {
	return d.write(func() error { return d.Journal.RecordTermination(uid, id, how) })
}

func (d *slowDisk) SetResizeConditions(uid types.UID, conditions podstatus.ResizeConditions) error {
	return d.write(func() error { return d.Journal.SetResizeConditions(uid, conditions) })
}

// 200 jobs end while the disk of the journal is slow or hangs, and 100 other pods lose readiness: these need no
// disk and are sent at once.
func TestSlowOrHungDisk_DelaysNoWithdrawal(t *testing.T) {
	for name, disk := range map[string]func() *slowDisk{
		"1 s per write": func() *slowDisk { return newSlowDisk(time.Second) },
		"hangs":         func() *slowDisk { d := newSlowDisk(0); d.hangs = make(chan struct{}); return d },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { withdrawDuringEnds(t, disk()) })
		})
	}
}

func withdrawDuringEnds(t *testing.T, disk *slowDisk) {
	w := newWorld(t, withJournal(disk))
	var jobs, services []*v1.Pod
	for i := range 200 {
		jobs = append(jobs, w.create(fmt.Sprint("job-", i), restartNever))
	}
	for i := range 100 {
		services = append(services, w.create(fmt.Sprint("service-", i)))
	}
	w.run()
	for _, pod := range slices.Concat(jobs, services) {
		w.set(pod, running(pod, true))
	}
	time.Sleep(time.Minute)
	w.wantNothingPending()
	const latency = 10 * time.Millisecond
	w.api.SetLatency(latency)
	answered := w.firstAnswers()
	var reports sync.WaitGroup
	for _, pod := range jobs {
		reports.Go(func() { w.set(pod, ended(pod, 0)) })
	}
	time.Sleep(3 * time.Second)
	began := map[string]time.Time{}
	for _, pod := range services {
		began[pod.Name] = time.Now()
		w.set(pod, running(pod, false))
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Second)
	var queued []time.Duration
	for name, began := range began {
		if at, ok := answered(name); ok {
			queued = append(queued, at.Sub(began)-latency)
		} else {
			t.Errorf("the loss of readiness of %s is not sent", name)
		}
	}
	if slices.Sort(queued); len(queued) > 0 && queued[len(queued)*99/100] > 20*time.Millisecond {
		t.Errorf("p99 of the time in the queue is %v", queued[len(queued)*99/100])
	}
	if disk.hangs != nil {
		w.wantWaitingForTheDisk(200)
		close(disk.hangs)
	}
	reports.Wait()
	time.Sleep(time.Hour)
	w.wantNothingPending()
	for _, pod := range slices.Concat(jobs, services) {
		w.wantAgreement(pod)
	}
	if kept := disk.Finals(); len(kept) != len(jobs) {
		t.Errorf("the journal has %d ends, want those of all %d jobs", len(kept), len(jobs))
	}
}

// firstAnswers notes when the first request for each pod is answered, from now on.
func (w *world) firstAnswers() (answered func(pod string) (time.Time, bool)) {
	var mu sync.Mutex
	first := map[string]time.Time{}
	w.api.SetFault(func(_ context.Context, s statustest.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if _, ok := first[s.PodName()]; !ok {
			first[s.PodName()] = time.Now()
		}
		return nil
	})
	return func(pod string) (time.Time, bool) {
		mu.Lock()
		defer mu.Unlock()
		at, ok := first[pod]
		return at, ok
	}
}

func (w *world) wantWaitingForTheDisk(want int) {
	w.Helper()
	waiting := 0
	for _, p := range w.manager.Pending() {
		if strings.Contains(p.Reason, "disk") && p.Name != "" {
			waiting++
		}
	}
	if waiting != want {
		w.Errorf("Pending names %d pods that wait for the disk, want %d", waiting, want)
	}
}

// An informer delivers all of a process: it must not wait for a disk.
func TestSlowDisk_DelaysNoInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSlowDisk(0)
		w := newEmbedder(t, withJournal(disk))
		w.run()
		var pods []*v1.Pod
		for i := range 100 {
			pod := w.create(fmt.Sprint("web-", i))
			must(w.manager.SetPodAllocation(pod))
			w.manager.Resizes().SetPodResizePendingCondition(pod.UID, "Deferred", "no room", 1)
			pods = append(pods, pod)
		}
		disk.takes.Store(int64(5 * time.Second))
		handler, began := w.manager.EventHandler(), time.Now()
		for _, pod := range pods {
			handler.OnDelete(pod)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("100 deletions took %v", took)
		}
		time.Sleep(time.Minute + time.Second)
		w.wantWaitingForTheDisk(100 - 60/5)
		time.Sleep(time.Hour)
		w.wantNothingLeft(disk.Journal.(*journal.Memory))
		w.wantNothingPending()
	})
}

// A report of an end returns when the end is durable: in the journal, or in the API.
func TestReportOfAnEnd_ReturnsWhenItIsDurable(t *testing.T) {
	for _, c := range []struct {
		name         string
		disk, server time.Duration
		want         time.Duration
	}{
		{"journal first", time.Second, time.Minute / 2, time.Second},
		{"API first", time.Minute, 2 * time.Second, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := newSlowDisk(c.disk)
				w, pod := newWorld(t, withJournal(disk), func(o *Options) { o.RequestTimeout = time.Hour }).runWith("job", restartNever)
				w.api.SetLatency(c.server)
				began := time.Now()
				w.set(pod, ended(pod, 1))
				if took := time.Since(began); took != c.want {
					t.Errorf("the report took %v, want %v", took, c.want)
				}
				if len(disk.Finals()) == 0 && !podstatus.IsTerminal(w.api.Pod(pod).Status.Phase) {
					t.Error("the report has returned, and its end is neither in the journal nor in the API")
				}
				time.Sleep(time.Hour)
				w.wantNothingPending()
			})
		})
	}
}

// Neither server nor disk respond: the report returns with a warning, and those after it at once.
func TestReportOfAnEnd_DoesNotHangWithTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSlowDisk(0)
		disk.hangs = make(chan struct{})
		w := newWorld(t, withJournal(disk))
		first, second := w.create("first", restartNever), w.create("second", restartNever)
		w.run()
		w.api.SetFault(func(context.Context, statustest.Request) error { return statustest.ErrRefused })
		for pod, want := range map[*v1.Pod]time.Duration{first: diskPatience} {
			began := time.Now()
			_, err := w.manager.SetPodStatus(pod, ended(pod, 1))
			if took := time.Since(began); !IsWarning(err) || took != want {
				t.Errorf("the report took %v, and returned %v; want %v, and a warning", took, err, want)
			}
		}
		began := time.Now()
		if err := w.manager.TerminatePod(second); !IsWarning(err) || time.Since(began) > 0 {
			t.Errorf("the report took %v, and returned %v; want a warning at once", time.Since(began), err)
		}
		if err := w.manager.ObserveTermination(first.UID, "process://x", v1.ContainerStateTerminated{ExitCode: 3}); err == nil || time.Since(began) > 0 {
			t.Errorf("an observed end took %v, and returned %v; want an error at once", time.Since(began), err)
		}
		w.manager.Resizes().SetPodResizePendingCondition(first.UID, "Deferred", "no room", 1)
		w.manager.Forget(second.UID)
		if took := time.Since(began); took > 0 {
			t.Errorf("the calls took %v", took)
		}
		w.wantWaitingForTheDisk(1)
		close(disk.hangs)
		time.Sleep(time.Second)
		if finals := disk.Finals(); len(finals) != 1 || finals[first.UID].Name != "first" {
			t.Errorf("the journal has the ends %v, want that of the pod that is there", finals)
		}
		w.api.SetFault(nil)
		time.Sleep(time.Hour)
		w.wantNothingPending()
	})
}

// What is forgotten while the disk is slow does not take away what another life of the UID has written.
func TestSlowDisk_KeepsTheOrderOfAPodsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSlowDisk(time.Second)
		w := newEmbedder(t, withJournal(disk))
		w.run()
		pod := w.create("web")
		must(w.manager.SetPodAllocation(pod))
		w.manager.ObserveDelete(pod)
		w.manager.ObservePod(pod)
		must(w.manager.SetPodAllocation(pod))
		time.Sleep(time.Minute)
		if _, ok := w.manager.GetContainerResourceAllocation(pod.UID, "main"); !ok {
			t.Error("the allocation of the second life is lost")
		}
	})
}

// A removal of orphans that waits for the disk does not remove what was written after it was asked for.
func TestSlowDisk_OrphansAreThoseOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSlowDisk(time.Second)
		w := newWorld(t, withJournal(disk))
		old, young := w.create("old"), w.create("young")
		must(w.manager.SetPodAllocation(old))
		go w.manager.Forget("another")
		disk.retains = make(chan struct{})
		go w.manager.RemoveOrphanedStatuses(map[types.UID]bool{})
		synctest.Wait()
		must(w.manager.SetPodAllocation(young))
		close(disk.retains) // the disk gets to the orphans after the young pod is written
		time.Sleep(time.Minute)
		if _, ok := w.manager.GetContainerResourceAllocation(young.UID, "main"); !ok {
			t.Error("the allocation of a pod that is younger than the call is lost")
		}
		if _, ok := w.manager.GetContainerResourceAllocation(old.UID, "main"); ok {
			t.Error("the orphan's allocation is still there")
		}
	})
}

// A batch system repeats for each pod what it has seen of it. What is said of an end already costs nothing.
func TestRepeatedEnd_CostsNothing(t *testing.T) {
	ways := map[string]func(*v1.Pod){
		"kept":           func(*v1.Pod) {},
		"with finalizer": func(p *v1.Pod) { p.Finalizers = []string{"batch.kubernetes.io/job-tracking"}; deleting(p) },
	}
	for name, edit := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := newSlowDisk(0)
				observer := &counting{}
				w := newEmbedder(t, withJournal(disk), func(o *Options) { o.Observer = observer })
				w.run()
				pod := w.create("job", restartNever, edit)
				end := func() {
					w.set(pod, ended(pod, 0))
					must(w.manager.TerminatePod(pod))
					time.Sleep(time.Second)
					if newest, ok := w.manager.table.ByUID(pod.UID); ok {
						pod = newest
					}
				}
				end()
				w.api.ForgetRequests()
				writes, steps, version := disk.writes.Load(), observer.steps.Load(), w.manager.cache.load(pod.UID).version
				for range 600 {
					end()
				}
				w.wantLog("600 times the same end")
				if more := disk.writes.Load() - writes; more > 0 {
					t.Errorf("%d writes to the journal", more)
				}
				if more := observer.steps.Load() - steps; more > 0 {
					t.Errorf("%d events", more)
				}
				if got := w.manager.cache.load(pod.UID).version; got != version {
					t.Errorf("the version went from %d to %d", version, got)
				}
			})
		})
	}
}

// counting is an Observer that counts.
type counting struct {
	steps atomic.Int64
}

func (c *counting) Changed(podstatus.Change)              { c.steps.Add(1) }
func (c *counting) Accepted(types.UID, uint64, time.Time) { c.steps.Add(1) }
func (c *counting) Failed(podstatus.Undelivered)          { c.steps.Add(1) }
func (c *counting) Removed(types.UID, time.Time)          { c.steps.Add(1) }

// What was deleted while no process of the node ran leaves nothing in the journal.
func TestJournal_ForgetsWhatWasDeletedWhileTheProcessWasDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		api := statustest.New()
		for i := range 50 {
			w := newEmbedder(t, withJournal(memory), func(o *Options) { o.Client = api })
			w.api = api
			pod := newPod(fmt.Sprint("web-", i))
			api.Put(pod)
			pod = api.Pod(pod)
			w.manager.ObservePod(pod)
			w.run()
			w.set(pod, running(pod, true))
			must(w.manager.SetPodAllocation(pod))
			must(w.manager.ObserveTermination(pod.UID, fmt.Sprint("process://", i), v1.ContainerStateTerminated{ExitCode: 1}))
			time.Sleep(time.Second)
			w.stop()
			api.Remove(pod.Namespace, pod.Name)
		}
		last := newEmbedder(t, withJournal(memory), func(o *Options) { o.Client = api })
		last.api = api
		last.run()
		last.wantNothingLeft(memory)
	})
}

// What a full disk did not let the journal remove is removed once there is room.
func TestRemovalThatFailed_IsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		full := &stuckPods{Journal: memory}
		w := newEmbedder(t, withJournal(full))
		w.run()
		web, job := w.create("web"), w.create("job", restartNever)
		must(w.manager.SetPodAllocation(web))
		w.set(job, ended(job, 0))
		full.full.Store(true)
		w.manager.ObserveDelete(web)
		time.Sleep(2 * retryEvery)
		full.full.Store(false)
		time.Sleep(2 * retryEvery)
		w.manager.ObserveDelete(job)
		synctest.Wait()
		if _, ok := memory.GetPodAllocation(web.UID); ok || len(memory.Finals()) > 0 {
			t.Errorf("left in the journal: allocation %v, ends %v", ok, memory.Finals())
		}
	})
}

// So are the orphans, but not a pod that was written meanwhile.
func TestRemovalOfOrphansThatFailed_IsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &stuckPods{Journal: journal.NewMemory()}
		w := newWorld(t, withJournal(full))
		old, young := w.create("old"), w.create("young")
		w.run()
		must(w.manager.SetPodAllocation(old))
		full.full.Store(true)
		w.manager.RemoveOrphanedStatuses(map[types.UID]bool{})
		time.Sleep(2 * retryEvery)
		full.full.Store(false)
		must(w.manager.SetPodAllocation(young))
		time.Sleep(2 * retryEvery)
		if _, ok := w.manager.GetContainerResourceAllocation(old.UID, "main"); ok {
			t.Error("the orphan's allocation is still there")
		}
		if _, ok := w.manager.GetContainerResourceAllocation(young.UID, "main"); !ok {
			t.Error("the allocation of a pod that is younger than the call is lost")
		}
		w.manager.writes.mu.Lock()
		left := w.manager.writes.retentions
		w.manager.writes.mu.Unlock()
		if len(left) > 0 {
			t.Errorf("%d removals are still under way", len(left))
		}
	})
}

// stuckPods removes no pods while it is full.
type stuckPods struct {
	Journal
	full atomic.Bool
}

func (d *stuckPods) RetainPods(keep func(types.UID) bool) (int, error) {
	if d.full.Load() {
		return 0, errDiskFull
	}
	return d.Journal.RetainPods(keep)
}

func (d *stuckPods) RemovePod(uid types.UID) error {
	if d.full.Load() {
		return errDiskFull
	}
	return d.Journal.RemovePod(uid)
}

// A repeated end of a pod in deletion with other resource claims is kept in the cache, as the kubelet keeps it.
func TestRepeatedEnd_KeepsResourceClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEmbedder(t)
		w.run()
		pod := w.create("job", restartNever, func(p *v1.Pod) { p.Finalizers = []string{"example.com/keep"}; deleting(p) })
		end := ended(pod, 0)
		w.set(pod, end)
		end.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "mine"}}
		w.set(pod, end)
		if got, _ := w.manager.GetPodStatus(pod.UID); len(got.ResourceClaimStatuses) != 1 {
			t.Errorf("claims %v, want those of the last report", got.ResourceClaimStatuses)
		}
	})
}
