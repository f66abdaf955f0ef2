package process

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// reboot makes the records those of an earlier boot of the machine.
func (h *host) reboot(t *testing.T, uid, id string) {
	t.Helper()
	dir := podDir(filepath.Join(h.dir, "pods", uid))
	var pod podRecord
	var spec record.Spec
	var shim proc.ID
	err := errors.Join(record.Read(dir.record(), &pod), record.Read(dir.container(id).Spec(), &spec), record.Read(dir.container(id).Shim(), &shim))
	if err != nil {
		t.Fatal(err)
	}
	pod.Boot, spec.Boot, shim.Boot = "another", "another", "another"
	err = errors.Join(record.Write(dir.record(), pod), record.Write(dir.container(id).Spec(), spec), record.Write(dir.container(id).Shim(), shim))
	if err != nil {
		t.Fatal(err)
	}
}

func TestContainersOfAnEarlierBootRanInAnEarlierPlace(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", "exit 0")
	id := h.start(t, pod)
	h.awaitExit(t, "pod")
	before, err := h.Pod(t.Context(), "pod")
	if err != nil || before.Containers[0].EarlierPlace || !before.PlaceSince.Equal(before.CreatedAt) {
		t.Errorf("before the restart of the machine: got %+v, %v; want the place it was created in", before, err)
	}
	h.close()
	h.reboot(t, "pod", id)
	h.open(t)
	after, err := h.Pod(t.Context(), "pod")
	if err != nil || !after.Containers[0].EarlierPlace || !after.PlaceSince.After(before.PlaceSince) || !after.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("after it: got %+v, %v; want a new place", after, err)
	}
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if _, err := h.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time after a restart of statusd
		now, err := h.Pod(t.Context(), "pod")
		if err != nil || len(now.Containers) != 2 || now.Containers[0].EarlierPlace || !now.Containers[1].EarlierPlace {
			t.Errorf("after a new start: got %+v, %v; want attempt 1 in the new place, attempt 0 in the earlier one", now, err)
		}
		if !now.PlaceSince.Equal(after.PlaceSince) {
			t.Errorf("the place is of %s, want %s", now.PlaceSince, after.PlaceSince)
		}
		h.close()
		h.open(t)
	}
}
