//go:build real

package cri

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/test/campaign"
	waiting "github.com/statusd/statusd/test/patience"
	"github.com/statusd/statusd/test/stock"
	"github.com/statusd/statusd/test/testlog"
)

// The kernel gives a resized container what it was resized to, and burstable pods the weight of their requests. A privileged debugger is started in a pod
// without privileges.
func TestRealResources(t *testing.T) {
	containerd := stock.StartContainerd(t)
	loadToolbox(t, containerd)
	rt, end := open(t, containerd, t.TempDir(), testlog.New(t))
	defer end()
	patient, cancel := waiting.Context(t)
	defer cancel()
	pod := testPod("resized")
	pod.Spec.HostNetwork = true
	main := shellIn(toolbox, "sleep 1000000")
	main.Resources = v1.ResourceRequirements{Requests: resources("200m", "32Mi"), Limits: resources("1", "64Mi")}
	pod.Spec.Containers = []v1.Container{main}
	if err := rt.StartPod(patient, pod); err != nil {
		t.Fatal(err)
	}
	id, err := rt.StartContainer(patient, pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.ResizeContainer(patient, id, v1.ResourceRequirements{Requests: resources("500m", "32Mi"), Limits: resources("1", "200Mi")}); err != nil {
		t.Fatal(err)
	}
	for what, dirs := range map[string][]string{"pod": rt.groups.everywhere(rt.groups.pathOf(pod)), "container": rt.groups.of(pod, bareID(id))} {
		if got := numberIn(dirs, "memory.limit_in_bytes", "memory.max"); got != 200<<20 {
			t.Errorf("memory limit of the %s: got %d, want 200 MiB", what, got)
		}
	}
	if dirs := rt.groups.everywhere(burstable); numberIn(dirs, "cpu.shares") != 512 && numberIn(dirs, "cpu.weight") != 20 {
		t.Errorf("weight of burstable pods: got %d shares, weight %d, want those of 500m", numberIn(dirs, "cpu.shares"), numberIn(dirs, "cpu.weight"))
	}
	debugger := shellIn(toolbox, "sleep 1000000")
	debugger.Name, debugger.SecurityContext = "debugger", &v1.SecurityContext{Privileged: new(true)}
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(debugger)}}
	second, err := rt.StartContainer(patient, pod, &debugger, 0)
	if err != nil {
		t.Errorf("a privileged debugger: %v", err)
	}
	for _, id := range []string{id, second} {
		if err := rt.StopContainer(patient, id, 0); err != nil && id != "" {
			t.Error(err)
		}
	}
	if err := campaign.Await(patient, 20*time.Millisecond, func() error { return rt.RemovePod(patient, pod.UID) }); err != nil {
		t.Fatal(err)
	}
	if p, err := rt.Pods(patient); err != nil || len(p) > 0 {
		t.Errorf("left: %v, %v", p, err)
	}
}

// numberIn is the number in the first of the files that exists in one of the directories.
func numberIn(dirs []string, files ...string) int64 {
	for _, dir := range dirs {
		for _, file := range files {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if n, parseErr := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && parseErr == nil {
				return n
			}
		}
	}
	return -1
}
