package virtualkubelet

import (
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// virtual-kubelet #762: the API server is down, the pod dies, the process is restarted: virtual-kubelet creates the pod
// again, and nobody learns of its end.
func TestIssue762_APodThatDiedDuringAnOutageIsNotCreatedAgain(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		pod := w.run("job")
		w.want(pod, "started", v1.PodRunning, true)

		w.api.SetFault(statustest.Always(statustest.ErrRefused))
		provider.lose("job")
		w.stop()
		w.api.SetFault(nil)
		w.start()
		w.after(time.Second)
		w.want(pod, "after the restart", v1.PodFailed, false)
		if got := w.api.Pod(pod).Status.Reason; got != "NotFound" {
			t.Errorf("the pod is Failed for the reason %q, want NotFound", got)
		}
		w.wantCreatedOnce(provider, pod)
		w.wantRepair(Vanished)
	})
}

// #762, with an end that the provider has reported before it forgot the pod: the journal has the exit code.
func TestIssue762_AnEndThatWasReportedSurvivesTheRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	open := func() *journal.Durable {
		j, err := journal.Open(path, journal.Options{NodeName: "n"})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	var first *journal.Durable
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		pod := w.run("job", never)
		w.api.SetFault(statustest.Always(statustest.ErrRefused))
		provider.change("job", func(p *v1.Pod) { p.Status = endedStatus(p, 7) })
		w.after(10 * time.Second)
		w.want(pod, "during the outage", v1.PodRunning, true)
		provider.lose("job")
		w.stop()
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}

		second := open()
		t.Cleanup(func() { _ = second.Close() })
		w.journal = second
		w.api.SetFault(nil)
		w.start()
		w.after(time.Second)
		w.want(pod, "after the restart", v1.PodFailed, false)
		if end := w.api.Pod(pod).Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 7 {
			t.Errorf("the container ended as %+v, want exit code 7", end)
		}
		w.wantCreatedOnce(provider, pod)
	}, func(w *world) { first = open(); w.journal = first })
}

// virtual-kubelet #712: a terminal status whose request has failed once is never sent.
func TestIssue712_ATerminalStatusThatFailedIsSentAgain(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		pod := w.run("job", never)
		w.api.SetFault(statustest.On("PATCH", statustest.ErrRefused))
		provider.change("job", func(p *v1.Pod) { p.Status = endedStatus(p, 0) })
		w.after(time.Minute)
		w.want(pod, "during the outage", v1.PodRunning, true)
		w.api.SetFault(nil)
		w.after(time.Minute)
		w.want(pod, "after it", v1.PodSucceeded, false)
	})
}

// virtual-kubelet #744: UpdatePod fails, and the pod regresses to Pending.
func TestIssue744_AFailedUpdateLeavesThePodAsItIs(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		pod := w.run("web")
		works := provider.refuses("UpdatePod")
		w.api.Change(pod, func(p *v1.Pod) { p.Labels = map[string]string{"tier": "gold"} })
		w.after(time.Minute)
		w.want(pod, "while UpdatePod fails", v1.PodRunning, true)
		works()
		w.after(10 * time.Minute)
		w.want(pod, "after it", v1.PodRunning, true)
		if provider.updates != 1 {
			t.Errorf("the provider took %d updates, want one", provider.updates)
		}
	})
}

// virtual-kubelet #899: the node lifecycle controller marks the pod NotReady, and it stays so.
func TestIssue899_ReadinessThatAnotherWriterTookIsBack(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		pod := w.run("web")
		w.want(pod, "before", v1.PodRunning, true)
		w.api.Change(pod, func(p *v1.Pod) {
			podstatus.FindCondition(p.Status.Conditions, v1.PodReady).Status = v1.ConditionFalse
		})
		w.after(time.Minute)
		w.want(pod, "after the provider has said nothing new", v1.PodRunning, true)
	})
}

// A provider that does not answer must not be taken for one without pods.
func TestNoPodIsCreatedBeforeTheProviderSaidWhatItHas(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		pod := w.run("web")
		w.stop()
		works := provider.refuses("GetPods")
		w.start()
		fresh := w.create("fresh")
		w.after(time.Minute)
		if provider.creations(fresh) != 0 {
			t.Error("a pod was created while the provider did not say what it has")
		}
		w.want(pod, "meanwhile", v1.PodRunning, true)
		works()
		w.after(time.Minute)
		w.want(fresh, "after it", v1.PodRunning, true)
	})
}

// What happened to pods while the process was down.
func TestRestart(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		stays, deleted, forced, replaced, ends := w.create("stays"), w.create("deleted"), w.create("forced"), w.create("replaced"), w.create("ends", never)
		w.after(time.Second)
		w.stop()
		time.Sleep(time.Minute)
		w.api.DeleteGracefully("default", "deleted", 30)
		w.api.Remove("default", "forced")
		w.api.Remove("default", "replaced")
		replacement := w.create("replaced")
		provider.change("ends", func(p *v1.Pod) { p.Status = endedStatus(p, 3) })
		w.start()
		w.after(5 * time.Second)
		w.want(stays, "left alone", v1.PodRunning, true)
		w.wantGone(deleted, "deleted meanwhile")
		w.want(replacement, "replaced under its name", v1.PodRunning, true)
		w.want(ends, "ended meanwhile", v1.PodFailed, false)
		pods, _ := provider.GetPods(t.Context())
		if len(pods) != 3 {
			t.Errorf("the provider has %d pods, want stays, replaced and ends", len(pods))
		}
		w.wantCreatedOnce(provider, stays, replacement, ends)
		_, _ = forced, replaced
	})
}

// A pod that is deleted without grace and created again under its name: the former one goes first.
func TestReplacedUnderTheSameName(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		before := w.run("web")
		works := provider.refuses("DeletePod") // the former pod cannot be removed yet
		w.api.Remove("default", "web")
		pod := w.create("web")
		w.after(10 * time.Second)
		w.want(pod, "while the former pod is there", v1.PodPending, false)
		if provider.creations(pod) != 0 {
			t.Error("the pod was created while the former one was there")
		}
		works()
		w.after(time.Minute)
		w.want(pod, "after it", v1.PodRunning, true)
		if provider.creations(before) != 1 {
			t.Error("the former pod was created again")
		}
	})
}
