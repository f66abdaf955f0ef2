//go:build real

package process

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// Starts that fail at each step for want of descriptors leave no control group, once their pods are removed.
func TestStartsWithoutDescriptors_LeaveNoControlGroups(t *testing.T) {
	h := newHost(t)
	h.options.CgroupParent = fmt.Sprintf("/statusd-descriptors-%d", os.Getpid())
	h.open(t)
	if !h.groups.usable() {
		t.Fatal("this test needs control groups")
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	failed, started := 0, false
	for room := 0; room < 64 && !started; room++ {
		pod := scriptPod(types.UID(fmt.Sprintf("pod-%d", room)), "exec sleep 100000")
		if err := h.StartPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		few := unix.Rlimit{Cur: uint64(len(open) - 1 + room), Max: before.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		id, err := h.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			failed++
		} else {
			started = true
			if err := h.StopContainer(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
		}
		h.awaitAllExited(t, pod.UID)
		if err := h.RemovePod(t.Context(), pod.UID); err != nil {
			t.Errorf("room for %d: %v", room, err)
		}
		for _, dir := range h.groups.hierarchy.Dirs(string(pod.UID)) {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("room for %d: %s is left", room, dir)
			}
		}
	}
	if failed == 0 || !started {
		t.Errorf("%d starts failed, one succeeded: %t; want some and one", failed, started)
	}
}
