package service

import (
	"errors"
	"os"
	"testing"
)

func TestSystemd_WithoutABus(t *testing.T) {
	unit := NewSystemd("kubelet.service", SystemdOptions{Address: "unix:path=/nowhere/bus"})
	if p, err := unit.State(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %+v (%v)", p, err)
	}
	if err := unit.Restart(t.Context()); err == nil {
		t.Error("restarted without a bus")
	}
	if err := unit.Watch(t.Context(), func() {}); err == nil {
		t.Error("watched without a bus")
	}
}
