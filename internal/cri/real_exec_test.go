//go:build real

package cri

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/test/campaign"
	waiting "github.com/statusd/statusd/test/patience"
	"github.com/statusd/statusd/test/stock"
	"github.com/statusd/statusd/test/testlog"
)

// While a real containerd is frozen, no probe fails because of that; a command that takes too long fails when it goes on.
func TestRealExec_FrozenRuntime(t *testing.T) {
	containerd := stock.StartContainerd(t)
	loadToolbox(t, containerd)
	rt, end := open(t, containerd, t.TempDir(), testlog.New(t))
	defer end()
	patient, cancel := waiting.Context(t)
	defer cancel()
	pod := testPod("probed")
	pod.Spec.HostNetwork = true
	pod.Spec.Containers = []v1.Container{shellIn(toolbox, "sleep 1000000")}
	if err := rt.StartPod(patient, pod); err != nil {
		t.Fatal(err)
	}
	id, err := rt.StartContainer(patient, pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	probe := func(command ...string) error {
		ctx, cancel := context.WithTimeout(patient, time.Second)
		defer cancel()
		_, err := rt.Exec(ctx, id, command)
		return err
	}
	if err := containerd.Process().Pause(patient); err != nil {
		t.Fatal(err)
	}
	err = probe("true")
	containerd.Process().Resume()
	if !errors.Is(err, errSilent) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v of a frozen container runtime, want that it does not answer", err)
	}
	err = campaign.Await(patient, 20*time.Millisecond, func() error {
		if err := probe("sleep", "1000"); !errors.Is(err, context.DeadlineExceeded) {
			return errors.Join(errors.New("a command that takes too long has not failed"), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := rt.StopContainer(patient, id, 0); err != nil {
		t.Fatal(err)
	}
	if err := campaign.Await(patient, 20*time.Millisecond, func() error { return rt.RemovePod(patient, pod.UID) }); err != nil {
		t.Fatal(err)
	}
}
