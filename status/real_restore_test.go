//go:build real

package status_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// copyData copies the data of a server that does not run.
func copyData(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v: %s", from, err, out)
	}
}

// Invariant 11: a server is restored from a backup, and its resource versions go back. What
// the node says is there again within a minute, although the node reports nothing new; what it
// reports is not taken for delivered because the server had said so before the restore; and
// the node does not take itself for a rival.
func TestRealServer_RestoreFromABackupHeals(t *testing.T) {
	server := controlplanetest.Start(t)
	n := startNode(t, server, "edge", func(o *status.Options) { o.RequestTimeout = 5 * time.Second })
	ns := server.Namespace(t)
	backup := filepath.Join(t.TempDir(), "backup")

	var all []*v1.Pod
	for i := range 20 {
		pod := n.create(ns, fmt.Sprintf("pod-%02d", i))
		n.set(pod, runningStatus(pod, i%2 == 0))
		all = append(all, pod)
	}
	n.flush()
	server.Kill(t)
	copyData(t, server.Process.DataDir(), backup)
	server.Restart(t)

	for _, reports := range []bool{false, true} {
		for range 5 { // and back to how it is in the backup, and once more
			for _, pod := range all {
				n.flip(pod)
			}
			n.flush()
		}
		before := server.GetPod(t, ns, "pod-00").ResourceVersion
		server.Kill(t)
		copyData(t, backup, server.Process.DataDir())
		server.Restart(t)
		restored := time.Now()
		t.Logf("pod-00 had resource version %s before the restore, and has %s", before, server.GetPod(t, ns, "pod-00").ResourceVersion)
		if reports { // half of the pods go through a change and back to what the server had said before
			for _, pod := range all[:10] {
				n.flip(pod)
				n.flip(pod)
			}
		}
		for _, pod := range all {
			want, _ := n.manager.GetPodStatus(pod.UID)
			n.await(ns, pod.Name, "as the node says", func(p *v1.Pod) bool {
				return p.Status.Phase == want.Phase && readyIn(&p.Status) == readyIn(&want)
			})
		}
		t.Logf("reports %v: converged %v after the restored server was ready", reports, time.Since(restored).Round(time.Second))
		n.flush()
		if fights := n.manager.Fights(); len(fights) > 0 {
			t.Errorf("the node fights with itself: %+v", fights)
		}
		if pending := n.manager.Pending(); len(pending) > 0 {
			t.Errorf("pending: %+v", pending)
		}
	}
}

// flip reports the opposite readiness.
func (n *node) flip(pod *v1.Pod) {
	n.Helper()
	s, _ := n.manager.GetPodStatus(pod.UID)
	n.set(pod, runningStatus(pod, !readyIn(&s)))
}

func readyIn(s *v1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// The API server has the ends of pods, and is restored from a backup that does not. The process that has reported them has
// ended, and the next one knows them from the journal alone.
func TestRealServer_EndSurvivesARestoreAndARestart(t *testing.T) {
	server := controlplanetest.Start(t)
	path := filepath.Join(t.TempDir(), "journal.db")
	open := func() (*node, *journal.Durable) {
		durable, err := journal.Open(path, journal.Options{NodeName: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		return startNode(t, server, "edge", func(o *status.Options) { o.Journal, o.RequestTimeout = durable, 5*time.Second }), durable
	}
	first, durable := open()
	ns := server.Namespace(t)
	var all []*v1.Pod
	for i := range 10 {
		pod := first.create(ns, fmt.Sprintf("job-%02d", i))
		first.set(pod, runningStatus(pod, true))
		all = append(all, pod)
	}
	first.flush()
	backup := filepath.Join(t.TempDir(), "backup")
	server.Kill(t)
	copyData(t, server.Process.DataDir(), backup)
	server.Restart(t)
	for i, pod := range all {
		first.set(pod, endedStatus(pod, int32(i%2)))
	}
	first.flush()
	first.stop()
	if err := durable.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and once more
		server.Kill(t)
		copyData(t, backup, server.Process.DataDir())
		server.Restart(t)
		if got := server.GetPod(t, ns, "job-00").Status.Phase; got != v1.PodRunning {
			t.Fatalf("the restored server says %s, want Running", got)
		}
		next, durable := open()
		for i, pod := range all {
			if i%3 == 0 {
				if err := next.manager.TerminatePod(server.GetPod(t, ns, pod.Name)); err != nil {
					t.Fatal(err)
				}
			}
			want := v1.PodSucceeded
			if i%2 != 0 {
				want = v1.PodFailed
			}
			next.await(ns, pod.Name, "as it has ended", func(p *v1.Pod) bool {
				c := p.Status.ContainerStatuses
				return p.Status.Phase == want && len(c) == 1 && c[0].State.Terminated != nil && c[0].State.Terminated.ExitCode == int32(i%2)
			})
		}
		next.stop()
		if err := durable.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
