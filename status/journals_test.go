package status

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// endsJournal has the two methods of a program that keeps nothing but the ends of pods.
type endsJournal struct{ memory *journal.Memory }

func (j endsJournal) Finals() map[types.UID]podstatus.Final { return j.memory.Finals() }
func (j endsJournal) SetFinal(uid types.UID, f podstatus.Final) error {
	return j.memory.SetFinal(uid, f)
}

func TestJournalOfTwoMethods_KeepsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := endsJournal{journal.NewMemory()}
		first := newWorld(t, func(o *Options) { o.Journal = kept })
		job, gone, web := first.create("job", restartNever), first.create("gone", restartNever), first.create("web")
		first.run()
		first.api.SetFault(func(context.Context, statustest.Request) error { return errors.New("connection refused") })
		m := first.manager
		must(m.SetPodAllocation(job))
		must(m.ObserveTermination(job.UID, "process://job-uid", v1.ContainerStateTerminated{}))
		m.Resizes().SetPodResizePendingCondition(web.UID, v1.PodReasonDeferred, "", 1)
		first.set(job, ended(job, 3))
		first.set(gone, ended(gone, 1))
		m.Forget(gone.UID)
		synctest.Wait()
		if finals := kept.Finals(); len(finals) != 1 || finals[job.UID].Name != "job" {
			t.Errorf("kept are %v, want the end of the job alone", finals)
		}
		first.stop()

		second := newWorld(t, func(o *Options) { o.Journal = kept })
		second.api.Restore(first.api.Backup())
		second.table.Set(second.api.Pod(job))
		second.run()
		synctest.Wait()
		if phase := second.api.Pod(job).Status.Phase; phase != v1.PodFailed || len(kept.Finals()) != 1 {
			t.Errorf("after the restart the API says %s, and %d ends are kept; want Failed and one", phase, len(kept.Finals()))
		}
		second.manager.Forget(job.UID)
		if finals := kept.Finals(); len(finals) != 0 {
			t.Errorf("kept are %v after the pod is forgotten", finals)
		}
		must(kept.SetFinal("orphan", podstatus.Final{Name: "orphan"}))
		second.manager.RemoveOrphanedStatuses(nil)
		synctest.Wait()
		if finals := kept.Finals(); len(finals) != 0 {
			t.Errorf("kept are %v after all pods are gone", finals)
		}
	})
}
