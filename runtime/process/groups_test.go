package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/runtime"
)

// grouped makes the runtime use control groups of its own, and reports whether it can.
func grouped(t *testing.T, h *host) bool {
	t.Helper()
	h.options.CgroupParent = fmt.Sprintf("/statusd-test-%d", os.Getpid())
	h.open(t)
	return h.groups.problem() == ""
}

func resources(cpu, memory string) v1.ResourceRequirements {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	return v1.ResourceRequirements{Limits: list, Requests: list}
}

// A container that uses more memory than its limit is killed, and its end says why. Nothing is
// left of its groups. Where control groups cannot be made, it is rejected.
func TestAContainerOverItsMemoryIsOOMKilled(t *testing.T) {
	h := newHost(t)
	usable := grouped(t, h)
	pod := confinedPod(`x=$(head -c 200000000 /dev/zero | tr '\0' x); echo $x | wc -c`)
	container0(pod).Resources = resources("1", "32Mi")
	found := h.Check(pod)
	if !usable {
		if len(found) != 1 || !strings.Contains(found[0].Reason, "cgroupParent") {
			t.Errorf("got %v, want the limits rejected with what to do", found)
		}
		return
	}
	if len(found) > 0 {
		t.Fatalf("rejected: %v", found)
	}
	id := h.start(t, pod)
	dirs := append(h.groups.hierarchy.Dirs("pod"), h.groups.hierarchy.Dirs(groupPath("pod", id))...)
	if c := h.awaitExit(t, "pod"); c.ExitCode != 137 || c.Reason != runtime.ReasonOOMKilled {
		t.Errorf("got %+v, want OOMKilled", c)
	}
	if err := h.RemovePod(t.Context(), "pod"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// The container and what is executed in it are in its groups, which have its limits.
func TestLimitsAreThoseOfTheGroups(t *testing.T) {
	h := newHost(t)
	if !grouped(t, h) {
		return // TestAContainerOverItsMemoryIsOOMKilled has seen the rejection
	}
	pod := scriptPod("pod", `echo up > `+h.pipe+`; exec sleep 1000000`)
	container0(pod).Resources = resources("250m", "64Mi")
	id := h.start(t, pod)
	h.hear(t)
	got := map[string]string{}
	for _, dir := range h.groups.hierarchy.Dirs(groupPath("pod", id)) {
		for _, file := range []string{"cpu.max", "cpu.cfs_quota_us", "cpu.shares", "cpu.weight", "memory.max", "memory.limit_in_bytes"} {
			if data, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				got[file] = strings.TrimSpace(string(data))
			}
		}
	}
	v2 := map[string]string{"cpu.max": "25000 100000", "cpu.weight": "10", "memory.max": "67108864"}
	v1 := map[string]string{"cpu.cfs_quota_us": "25000", "cpu.shares": "256", "memory.limit_in_bytes": "67108864"}
	if fmt.Sprint(got) != fmt.Sprint(v1) && fmt.Sprint(got) != fmt.Sprint(v2) {
		t.Errorf("got %v, want %v or %v", got, v1, v2)
	}
	if err := h.ResizeContainer(t.Context(), id, resources("500m", "128Mi")); err != nil {
		t.Error(err)
	}
	resized := ""
	for _, dir := range h.groups.hierarchy.Dirs(groupPath("pod", id)) {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
			data, _ := os.ReadFile(filepath.Join(dir, file))
			resized += strings.TrimSpace(string(data))
		}
	}
	if resized != "134217728" {
		t.Errorf("after a resize to 128Mi the limit is %q", resized)
	}
	result, err := h.Exec(t.Context(), id, []string{"cat", "/proc/self/cgroup"})
	if err != nil || !strings.Contains(string(result.Output), groupPath("pod", id)) {
		t.Errorf("a command in the container is in %s, %v", result.Output, err)
	}
}

func TestWithoutAGroupLimitsAreRejected(t *testing.T) {
	pod := plainPod()
	container0(pod).Resources = resources("1", "1Gi")
	for story, groups := range map[string]*groups{
		"none configured": nil,
		"not writable":    {why: "limits cannot be enforced; name another cgroupParent"},
	} {
		r := ableRuntime()
		r.groups = groups
		found := r.Check(pod)
		if len(found) != 1 || found[0].Field != "spec.containers[0].resources.limits" || !strings.Contains(found[0].Reason, "cgroupParent") {
			t.Errorf("%s: got %v", story, found)
		}
	}
	if got := check(pod); len(got) > 0 {
		t.Errorf("with groups: rejected for %q", got)
	}
}

func TestLimitsOfAPodAreTheSumOfItsRequests(t *testing.T) {
	pod := scriptPod("pod", "true")
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "b"})
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources = resources("250m", "64Mi")
	}
	always := v1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers = []v1.Container{{Resources: resources("8", "1Gi")}, {Resources: resources("100m", "1Mi"), RestartPolicy: &always}}
	if got, want := podLimits(pod), (cgroup.Limits{MilliCPURequest: 600}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	whole := resources("2", "1Gi")
	pod.Spec.Resources = &whole
	if got, want := podLimits(pod), (cgroup.Limits{MilliCPU: 2000, Memory: 1 << 30, MilliCPURequest: 2000}); got != want {
		t.Errorf("with resources of its own: got %+v, want %+v", got, want)
	}
}

// The control groups of a pod that is given up, because its record is damaged, are removed.
func TestNoGroupIsLeftOfADamagedPod(t *testing.T) {
	h := newHost(t)
	if !grouped(t, h) {
		return // TestAContainerOverItsMemoryIsOOMKilled has seen the rejection
	}
	pod := scriptPod("pod", `echo up > `+h.pipe+`; exec sleep 1000000`)
	h.start(t, pod)
	h.hear(t)
	dirs := h.groups.hierarchy.Dirs("pod")
	h.close()
	if err := os.WriteFile(h.podDir("pod").record(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.open(t)
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// A control group that is busy when its pod is removed is removed later.
func TestRemovePod_BusyGroup_IsRemovedLater(t *testing.T) {
	h := newHost(t)
	if !grouped(t, h) {
		return // TestAContainerOverItsMemoryIsOOMKilled has seen the rejection
	}
	pod := scriptPod("pod", "exit 0")
	h.start(t, pod)
	h.awaitExit(t, pod.UID)
	dirs := h.groups.hierarchy.Dirs("pod")
	foreign := exec.Command("sleep", "1000000")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	busy := filepath.Join(dirs[0], "foreign")
	if err := errors.Join(os.MkdirAll(busy, 0o755), os.WriteFile(filepath.Join(busy, "cgroup.procs"), []byte(strconv.Itoa(foreign.Process.Pid)), 0)); err != nil {
		t.Fatal(err)
	}
	if err := h.RemovePod(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if found := h.Problems(); len(found) != 1 || !strings.Contains(found[0].Path, "control group of pod pod") {
		t.Errorf("got problems %v, want the control group", found)
	}
	if err := foreign.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = foreign.Wait() // it was killed
	for h.cleanOnce(t.Context()) && t.Context().Err() == nil {
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
	if found := h.Problems(); len(found) > 0 {
		t.Errorf("got problems %v, want none", found)
	}
}

// A container that could not be started leaves no groups, and those that a crash left are removed
// when the node is reset.
func TestContainerThatCannotBeStarted_LeavesNoGroups(t *testing.T) {
	h := newHost(t)
	h.options.ShimCommand = []string{"/no/such/shim"}
	if !grouped(t, h) {
		return // TestAContainerOverItsMemoryIsOOMKilled has seen the rejection
	}
	pod := scriptPod("pod", "true")
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if _, err := h.StartContainer(t.Context(), pod, container0(pod), 0); err == nil {
		t.Fatal("a container was started without a shim")
	}
	for _, dir := range h.groups.hierarchy.Dirs("pod") {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
	left := h.groups.hierarchy.Dirs("crashed/container")
	for _, dir := range left {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	RemoveGroups(h.options.CgroupParent, time.Hour)
	for _, dir := range left {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("a group of just now: %v; another runtime may be about to use it", err)
		}
	}
	RemoveGroups(h.options.CgroupParent, 0)
	for _, dir := range left {
		if _, err := os.Stat(filepath.Dir(filepath.Dir(dir))); err == nil {
			t.Errorf("%s is left after a reset", filepath.Dir(dir))
		}
	}
}

func TestMapsPodGroups(t *testing.T) {
	for groups, want := range map[string]bool{
		"         0          0 4294967295\n":                        true,
		"         0       1000          1\n":                        false,
		"         0     100000      65536\n":                        false,
		"0 1000 1\n1 100000 65536\n1900000000 1900000000 1048576\n": true,
		"0 1000 1\n1 100000 65536\n1900000000 1900000000 1048575\n": false,
		"0 1000 1\n1900000001 1900000001 1048576\n":                 false,
		"": false,
	} {
		if got := mapsPodGroups(groups); got != want {
			t.Errorf("%q: got %t, want %t", groups, got, want)
		}
	}
}
