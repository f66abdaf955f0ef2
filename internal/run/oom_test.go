package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/machine"
)

// The history of a pod names the container that the kernel has killed for lack of memory.
func TestOOMKill_NamesTheContainer(t *testing.T) {
	c := testConfig(t, "oom")
	log := filepath.Join(t.TempDir(), "kern.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Machine.NoKernelLog, c.Machine.LogFiles = true, map[string]string{log: "kernel"}
	p, _ := started(t, c)
	awaitReady(t, p, "sleeper-oom")
	pod, _ := p.node.Pods.ByName("default", "sleeper-oom")
	id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "process://")
	await(t, func() bool { // the log is followed from its end
		_, err := os.Stat(filepath.Join(c.StateDir, machine.PositionsFile))
		return err == nil
	})
	lines := fmt.Sprintf("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/statusd/%s/%s,task=sleep,pid=4242,uid=0\n"+
		"Memory cgroup out of memory: Killed process 4242 (sleep) total-vm:59948kB, anon-rss:24300kB, file-rss:1432kB\n", pod.UID, id)
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	record := awaitRecord(t, p, "default", "sleeper-oom", func(r history.Record) bool { return r.Kind == history.KindLog })
	if record.Reason != "OOMKilling" || record.Container != "main" {
		t.Errorf("got %+v, want an OOM kill of container main", record)
	}
}
