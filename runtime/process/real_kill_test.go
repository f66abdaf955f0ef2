//go:build real

package process

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// manyProcesses is far more than a container has, and far less than a machine can have.
const manyProcesses = 10_000

// A shim gives up, and says so in its log, on processes that do not end within 30 s. It must never
// get there because there are many of them.
func TestManyProcesses_EndWithTheirContainer(t *testing.T) {
	h := newHost(t)
	h.options.CgroupParent = fmt.Sprintf("/statusd-test-%d", os.Getpid())
	h.open(t)
	if !h.groups.usable() {
		t.Fatal("this test needs control groups")
	}
	never := h.pipe + "-never"
	if err := os.WriteFile(never, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A shell that waits for a lock which another one holds needs no program of its own.
	pod := scriptPod("pod", fmt.Sprintf(`mkfifo %[1]s.fifo; trap "" TERM; i=0; while [ $i -lt %[2]d ]; do (read x < %[1]s.fifo) & i=$((i+1)); done; echo up > %[3]s; wait`, never, manyProcesses, h.pipe))
	id := h.start(t, pod)
	if got := h.hear(t); got != "up" {
		t.Fatal(got)
	}
	begin := time.Now()
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	h.awaitExit(t, "pod")
	t.Logf("%d processes ended %v after the kill", manyProcesses, time.Since(begin).Round(time.Millisecond))
	dir := h.podDir("pod").container(id)
	if log, err := os.ReadFile(record.Dir(dir.Dir).ShimLog()); err != nil || len(log) > 0 {
		t.Errorf("the shim complains: %s%v", log, err)
	}
}
