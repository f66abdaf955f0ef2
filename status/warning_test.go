package status

import (
	"errors"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// Each error of a report is a Warning exactly if the report was stored.
func TestReportErrors_WarningMeansStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := errors.New("no space left on device")
		w := newWorld(t, func(o *Options) { o.Journal = fullDisk{journal.NewMemory(), disk} })
		job := w.create("job", restartNever)
		invalid := running(job, true)
		invalid.Phase = "Walking"
		alive := running(job, true)
		alive.PodIP = "10.0.0.2"
		steps := []struct {
			name    string
			report  func() error
			cause   func(error) bool
			warning bool
		}{
			{"a phase that does not exist", func() error { return second(w.manager.SetPodStatus(job, invalid)) }, isA[*InvalidStatusError], false},
			{"no status yet", func() error { return second(w.manager.UpdatePodStatus(job.UID, func(*v1.PodStatus) {})) }, is(ErrNoStatus), false},
			{"an end with a full disk", func() error { return second(w.manager.SetPodStatus(job, ended(job, 1))) }, is(disk), true},
			{"a container that is alive again", func() error { return second(w.manager.SetPodStatus(job, alive)) }, isA[*podstatus.TransitionError], false},
			{"a phase after the end, and a full disk", func() error {
				return second(w.manager.UpdatePodStatus(job.UID, func(s *v1.PodStatus) { s.Phase, s.HostIP = v1.PodRunning, "10.0.0.9" }))
			}, func(err error) bool { return isA[*PhaseError](err) && errors.Is(err, disk) }, true},
			{"another UID", func() error { return second(w.manager.UpdatePodStatus("other", func(*v1.PodStatus) {})) }, is(ErrUnknownPod), false},
			{"another container", func() error { return w.manager.SetContainerReadiness(job.UID, "other", true) }, is(ErrUnknownContainer), false},
			{"the pod is over, with a full disk", func() error { return w.manager.TerminatePod(job) }, is(disk), true},
		}
		for _, step := range steps {
			before := versionOf(w, job.UID)
			err := step.report()
			stored := versionOf(w, job.UID) > before
			if !step.cause(err) || IsWarning(err) != step.warning || stored != step.warning {
				t.Errorf("%s: got error %v, warning %v, stored %v, want warning and stored %v", step.name, err, IsWarning(err), stored, step.warning)
			}
		}
	})
}

// fullDisk is a journal that takes no end.
type fullDisk struct {
	*journal.Memory
	err error
}

func (d fullDisk) SetFinal(types.UID, podstatus.Final) error { return d.err }

func second(_ bool, err error) error { return err }

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func versionOf(w *world, uid types.UID) uint64 {
	d, _ := w.manager.Delivery(uid)
	return d.Version
}
