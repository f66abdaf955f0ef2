package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/cgroup"
)

// groupsInMemory remembers what the groups have, and each change.
type groupsInMemory struct {
	limits  map[string]cgroup.Limits
	weights map[string]int64
	changes []string
}

func (g *groupsInMemory) MakeParent(path string, limits cgroup.Limits) ([]string, error) {
	g.limits[path], g.weights[path] = limits, limits.MilliCPURequest
	return nil, nil
}

func (g *groupsInMemory) SetParent(path string, limits cgroup.Limits) error {
	if _, made := g.limits[path]; !made {
		return fs.ErrNotExist
	}
	g.changes = append(g.changes, fmt.Sprintf("%s memory %dMi", path, limits.Memory>>20))
	_, err := g.MakeParent(path, limits)
	return err
}

func (g *groupsInMemory) Weigh(path string, request int64) error {
	g.weights[path] = request
	return nil
}

// newGroupedNode is a node whose groups are in memory.
func newGroupedNode(t *testing.T) (*node, *groupsInMemory) {
	n := newNode(t)
	in := &groupsInMemory{limits: map[string]cgroup.Limits{}, weights: map[string]int64{}}
	n.groups.hierarchy = in
	return n, in
}

func resources(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
}

// burstablePod has two containers with the same limits.
func burstablePod(uid string) *v1.Pod {
	pod := testPod(types.UID("uid-" + uid))
	pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: resources("500m", "32Mi"), Limits: resources("1", "64Mi")}
	pod.Spec.Containers = append(pod.Spec.Containers, *pod.Spec.Containers[0].DeepCopy())
	pod.Spec.Containers[1].Name = "beside"
	return pod
}

// A pod's group would otherwise hold a container to the limits that the pod had at its start.
func TestResize_ChangesTheGroupOfThePod(t *testing.T) {
	n, in := newGroupedNode(t)
	pod := burstablePod("1")
	id := n.start(pod)
	const group = "burstable/poduid-1"
	if got := in.limits[group]; got != (cgroup.Limits{MilliCPU: 2000, Memory: 128 << 20, MilliCPURequest: 1000}) {
		t.Fatalf("at the start: got %+v", got)
	}
	for _, step := range []struct {
		story, memory string
		changes       []string
	}{
		{"the same", "64Mi", nil},
		{"more", "200Mi", []string{group + " memory 264Mi"}},
		{"less: the container first", "32Mi", []string{group + " memory 264Mi", group + " memory 96Mi"}},
	} {
		in.changes = nil
		updates := len(n.fake.updates)
		err := n.ResizeContainer(t.Context(), id, v1.ResourceRequirements{Requests: resources("500m", "32Mi"), Limits: resources("1", step.memory)})
		if err != nil || !slices.Equal(in.changes, step.changes) || len(n.fake.updates) != updates+1 {
			t.Errorf("%s: got changes %v, %d updates of the container, %v; want %v", step.story, in.changes, len(n.fake.updates)-updates, err, step.changes)
		}
	}
	n.open() // the next statusd knows what the container has
	n.groups.hierarchy = in
	if err := n.ResizeContainer(t.Context(), n.startBeside(pod), v1.ResourceRequirements{Requests: resources("500m", "32Mi"), Limits: resources("1", "100Mi")}); err != nil {
		t.Fatal(err)
	}
	if got := in.limits[group].Memory >> 20; got != 132 {
		t.Errorf("after a restart, and a resize of the other container: got %d MiB, want 132", got)
	}
}

// With control groups of version 2 the kernel would end a container whose limit falls below its usage.
func TestResize_BelowTheUsage_IsRefused(t *testing.T) {
	n, in := newGroupedNode(t)
	pod := burstablePod("1")
	id := n.start(pod)
	n.groups.root, n.groups.parent = t.TempDir(), "/node"
	dir := filepath.Join(n.groups.root, "node/kubepods/burstable/poduid-1", bareID(id))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(n.groups.root, "cgroup.controllers"): "", filepath.Join(dir, "cgroup.controllers"): "memory",
		filepath.Join(dir, "memory.current"): "41943040\n", filepath.Join(dir, "memory.stat"): "anon 41943040\n", // 40 MiB
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	limit := func(memory string) error {
		in.changes = nil
		return n.ResizeContainer(t.Context(), id, v1.ResourceRequirements{Requests: resources("500m", "32Mi"), Limits: resources("1", memory)})
	}
	if err := limit("40Mi"); err == nil || !strings.Contains(err.Error(), "memory limit (41943040) below current usage (41943040)") || len(n.fake.updates)+len(in.changes) > 0 {
		t.Errorf("got %v, %d updates and changes %v, want an error and none", err, len(n.fake.updates), in.changes)
	}
	for _, memory := range []string{"50Mi", "64Mi"} {
		if err := limit(memory); err != nil {
			t.Errorf("to %s: %v", memory, err)
		}
	}
}

// A container that was resized by a restart is made with its new resources.
func TestRestartWithOtherResources_ChangesTheGroupOfThePod(t *testing.T) {
	n, in := newGroupedNode(t)
	pod := burstablePod("1")
	id := n.start(pod)
	n.fake.change(func() { n.fake.exit(bareID(id), 0) })
	n.list()
	pod.Spec.Containers[0].Resources.Limits = resources("1", "128Mi")
	if _, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1); err != nil {
		t.Fatal(err)
	}
	if got := in.limits["burstable/poduid-1"].Memory >> 20; got != 192 {
		t.Errorf("got %d MiB, want 192", got)
	}
}

// startBeside starts the second container.
func (n *node) startBeside(pod *v1.Pod) string {
	n.t.Helper()
	id, err := n.StartContainer(n.t.Context(), pod, &pod.Spec.Containers[1], 0)
	if err != nil {
		n.t.Fatal(err)
	}
	return id
}

// Without weights all burstable pods together would get as little as one best-effort pod.
func TestBurstablePods_HaveTheWeightOfTheirRequests(t *testing.T) {
	n, in := newGroupedNode(t)
	n.options.Allocatable = func() v1.ResourceList { return resources("8", "16Gi") }
	want := func(story string, weight int64) {
		t.Helper()
		if got := in.weights["burstable"]; got != weight {
			t.Errorf("%s: got %d, want %d", story, got, weight)
		}
	}
	first, second := burstablePod("1"), burstablePod("2")
	id := n.start(first)
	n.start(second)
	want("two pods", 2000)
	if in.weights[""] != 8000 {
		t.Errorf("all pods together: got %d, want the 8 CPUs of the node", in.weights[""])
	}
	n.start(testPod("uid-3"))
	want("a best-effort pod beside them", 2000)
	if in.weights["besteffort"] != 0 {
		t.Errorf("best effort: got %d, want the least", in.weights["besteffort"])
	}
	if err := n.ResizeContainer(t.Context(), id, v1.ResourceRequirements{Requests: resources("700m", "64Mi"), Limits: resources("1", "64Mi")}); err != nil {
		t.Fatal(err)
	}
	want("a resized one", 2200)
	n.fake.change(func() { n.fake.exit(bareID(id), 0) })
	n.list()
	if err := n.RemoveVolumes(t.Context(), first.UID); err != nil {
		t.Fatal(err)
	}
	want("one has ended", 1000)
	if err := n.RemovePod(t.Context(), first.UID); err != nil {
		t.Fatal(err)
	}
	want("and is removed", 1000)
}

// A limit that cannot be raised keeps the container at its old one, and is tried again.
func TestResize_WithoutAGroup_IsAnError(t *testing.T) {
	n, in := newGroupedNode(t)
	id := n.start(burstablePod("1"))
	clear(in.limits)
	err := n.ResizeContainer(t.Context(), id, v1.ResourceRequirements{Requests: resources("500m", "64Mi"), Limits: resources("1", "128Mi")})
	if !errors.Is(err, fs.ErrNotExist) || len(n.fake.updates) > 0 {
		t.Errorf("got %v and %d updates, want an error first", err, len(n.fake.updates))
	}
}

func TestGroupsOfContainers_AreNamedByTheirRuntime(t *testing.T) {
	for _, c := range []struct {
		maker   string
		systemd bool
		want    string
	}{
		{"containerd", false, "id"}, {"containerd", true, "cri-containerd-id.scope"}, {"cri-o", false, "crio-id"}, {"cri-o", true, "crio-id.scope"},
	} {
		if got := (&groups{maker: c.maker, systemd: c.systemd}).nameOf("id"); got != c.want {
			t.Errorf("%s, systemd %v: got %s, want %s", c.maker, c.systemd, got, c.want)
		}
	}
}

func TestVersion2_EndsContainersAsAWholeAndDoesNotSwap(t *testing.T) {
	pod := testPod("uid-1")
	n := newNode(t)
	n.groups.root = t.TempDir()
	n.groups.parent = "/node"
	if got := n.fake.configs[bareID(n.start(pod))].Linux.Resources.Unified; len(got) > 0 {
		t.Errorf("version 1: got %v", got)
	}
	dir := filepath.Join(n.groups.root, "node/kubepods/besteffort/poduid-2")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(n.groups.root, "cgroup.controllers"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for swap, want := range map[bool]string{false: "map[memory.oom.group:1]", true: "map[memory.oom.group:1 memory.swap.max:0]"} {
		g := &groups{root: n.groups.root, parent: "/node", log: slog.New(slog.DiscardHandler)}
		if swap {
			if err := os.WriteFile(filepath.Join(dir, swapMax), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(filepath.Join(dir, swapMax)); err != nil {
			t.Fatal(err)
		}
		other := testPod("uid-2")
		if got := fmt.Sprint(g.withUnified(other, containerResources(other, &other.Spec.Containers[0])).Unified); got != want {
			t.Errorf("swap %v: got %s, want %s", swap, got, want)
		}
	}
}

// A start that was canceled goes on in the container runtime for a moment: what it makes after the removal of its pod is removed too.
func TestRemovePod_DuringACanceledStart_RemovesWhatIsMadeLater(t *testing.T) {
	n := newNode(t)
	n.groups.root, n.groups.parent = t.TempDir(), "/node"
	if err := os.WriteFile(filepath.Join(n.groups.root, "cgroup.controllers"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	pod := testPod("uid-1")
	n.fake.change(func() { n.fake.sandboxErr = status.Error(codes.Canceled, "context canceled") })
	if err := n.StartPod(t.Context(), pod); err == nil {
		t.Fatal("the start succeeds")
	}
	if err := n.RemovePod(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(n.groups.root, "node/kubepods/besteffort/poduid-1")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	n.fake.change(func() {
		for _, uid := range []string{"uid-1", "of-another-agent"} {
			n.fake.sandboxes[uid] = &runtimeapi.PodSandbox{Id: uid, Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid}, Labels: map[string]string{labelPodUID: uid}}
		}
	})
	n.removeLate(t.Context())
	if _, err := os.Stat(group); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the control group: got %v, want it removed", err)
	}
	if len(n.fake.sandboxes) != 1 || n.fake.sandboxes["of-another-agent"] == nil {
		t.Errorf("sandboxes: got %v, want that of another agent alone", n.fake.sandboxes)
	}
}
