//go:build real

package process

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/runtimetest"
	"github.com/statusd/statusd/test/binaries"
)

func TestConformanceWithTheSmallShim(t *testing.T) {
	program := binaries.Path(t, binaries.Shim)
	runtimetest.Run(t, runtimetest.Config{Image: Image, Open: func(t *testing.T, dir string) (runtime.Runtime, func()) {
		return open(t, Options{Dir: dir, ShimCommand: []string{program}})
	}})
}

// Containers of either shim are taken over by a statusd that uses the other one.
func TestContainersOutliveAChangeOfTheShim(t *testing.T) {
	program := binaries.Path(t, binaries.Shim)
	h := newHost(t)
	for _, commands := range [][2][]string{{nil, {program}}, {{program}, nil}} {
		h.options.ShimCommand = commands[0]
		h.open(t)
		id := h.start(t, scriptPod("pod", h.trapping()))
		h.hear(t)
		h.close()
		h.options.ShimCommand = commands[1]
		h.open(t)
		if c := h.only(t, "pod"); c.State != runtime.Running {
			t.Errorf("got %+v, want it running", c)
		}
		if err := h.StopContainer(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		if c := h.awaitExit(t, "pod"); c.ExitCode != 137 || c.Signal != 9 {
			t.Errorf("got %+v, want SIGKILL", c)
		}
		if err := h.RemovePod(t.Context(), "pod"); err != nil {
			t.Fatal(err)
		}
		h.close()
	}
}

// maxShimKiB is what a container may cost besides itself. Some shims take 150 KiB more or less than the
// others, by when their garbage is collected and how many threads they needed; the one in the middle
// differs by 40 KiB from run to run. As root, 1,580 to 1,610 KiB were seen: each container has a view of its own there, for its
// termination log.
const maxShimKiB = 1700

func TestAShimIsSmall(t *testing.T) {
	program := binaries.Path(t, binaries.Shim)
	h := newHost(t)
	h.options.ShimCommand = []string{program}
	h.open(t)
	const pods = 10 // which share the pages of the program
	var each []int64
	for i := range pods {
		uid := types.UID(fmt.Sprint("pod-", i))
		id := h.start(t, scriptPod(uid, fmt.Sprintf(`for i in $(seq 1000); do echo line $i; done; echo > %s; exec sleep 100000`, h.pipe)))
		h.hear(t)
		defer func() {
			if err := h.StopContainer(context.Background(), id, 0); err != nil {
				t.Error(err)
			}
		}()
	}
	all, err := h.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range all {
		each = append(each, proportional(t, h.shimOf(t, pod.Manifest.UID, pod.Containers[0].ID).PID))
	}
	slices.Sort(each)
	t.Logf("shims take %d KiB of memory", each)
	if middle := each[pods/2]; middle > maxShimKiB {
		t.Errorf("a shim takes %d KiB of memory, want at most %d", middle, maxShimKiB)
	}
}

// proportional is the memory of a process in KiB, each page divided by how many share it.
func proportional(t *testing.T, pid int) int64 {
	t.Helper()
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rollup)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
			return kib
		}
	}
	t.Fatalf("no Pss in %q", rollup)
	return 0
}
