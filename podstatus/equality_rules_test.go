package podstatus_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
)

// comparison is one row: two ways to say a status, and whether they say the same.
type comparison struct {
	story string
	a, b  v1.PodStatus
	want  bool
}

// run asks every comparison that should agree: Equal both ways, and the raw ones.
func (row comparison) run(t *testing.T) {
	t.Helper()
	pod := &v1.Pod{}
	row.a.StartTime, row.b.StartTime = &metav1.Time{Time: noon}, &metav1.Time{Time: noon}
	answers := map[string]bool{
		"Equal(a, b)":       podrules.Equal(&row.a, &row.b),
		"Equal(b, a)":       podrules.Equal(&row.b, &row.a),
		"Unchanged(a, b)":   podrules.Unchanged(pod, &row.a, &row.b),
		"!NeedsReconcile":   !podrules.NeedsReconcile(pod, &row.b, &row.a),
		"semantic (oracle)": plainEqual(&row.a, &row.b),
	}
	for name, got := range answers {
		if got != row.want {
			t.Errorf("%s: %s = %v, want %v", row.story, name, got, row.want)
		}
	}
}

func withConditions(words string) v1.PodStatus {
	return v1.PodStatus{Conditions: parseConditions(words)}
}

func explained(words, reason, message string) v1.PodStatus {
	status := withConditions(words)
	status.Conditions[0].Reason, status.Conditions[0].Message = reason, message
	return status
}

func TestE1_ConditionsAreASetComparedByStatusReasonMessage(t *testing.T) {
	for _, row := range []comparison{
		{"same", withConditions("Ready=True Initialized=True"), withConditions("Ready=True Initialized=True"), true},
		{"other order", withConditions("Ready=True Initialized=True"), withConditions("Initialized=True Ready=True"), true},
		{"other status", withConditions("Ready=True"), withConditions("Ready=False"), false},
		{"other status, other order", withConditions("Ready=True Initialized=True"), withConditions("Initialized=True Ready=False"), false},
		{"one more", withConditions("Ready=True"), withConditions("Ready=True Initialized=True"), false},
		{"another type", withConditions("Ready=True"), withConditions("Initialized=True"), false},
		{"a shared one", withConditions("DisruptionTarget=True"), withConditions(""), false},
		{"other reason", explained("Ready=False", "A", "m"), explained("Ready=False", "B", "m"), false},
		{"other message", explained("Ready=False", "A", "m"), explained("Ready=False", "A", "n"), false},
	} {
		row.run(t)
	}
}

func TestE2_ConditionTimesAndGenerationsAreIgnored(t *testing.T) {
	later := withConditions("Ready=True")
	later.Conditions[0].LastTransitionTime = metav1.NewTime(noon)
	later.Conditions[0].LastProbeTime = metav1.NewTime(noon)
	later.Conditions[0].ObservedGeneration = 7
	comparison{"times and generation", withConditions("Ready=True"), later, true}.run(t)
}

func TestE3_ForeignConditionsAreIgnored(t *testing.T) {
	for _, row := range []comparison{
		{"another status", withConditions("Ready=True x.io/a=True"), withConditions("Ready=True x.io/a=False"), true},
		{"another type", withConditions("x.io/a=True Ready=True"), withConditions("x.io/b=True Ready=True"), true},
		{"one more", withConditions("Ready=True"), withConditions("x.io/a=True Ready=True"), true},
		{"only foreign ones", withConditions("x.io/a=True"), withConditions(""), true},
	} {
		row.run(t)
	}
}

func TestE4_ClaimStatusesAreIgnored(t *testing.T) {
	comparison{"all three", v1.PodStatus{}, v1.PodStatus{
		ResourceClaimStatuses:                []v1.PodResourceClaimStatus{{Name: "gpu"}},
		ExtendedResourceClaimStatus:          &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"},
		NodeAllocatableResourceClaimStatuses: []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "y"}},
	}, true}.run(t)
}

func withCPU(quantity string) v1.PodStatus {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse(quantity)}
	return v1.PodStatus{AllocatedResources: list, ContainerStatuses: []v1.ContainerStatus{{
		AllocatedResources: list, Resources: &v1.ResourceRequirements{Requests: list, Limits: list},
	}}}
}

func since(at time.Time) v1.PodStatus {
	return v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}},
	}}}
}

func TestE5_TheRestIsComparedByMeaning(t *testing.T) {
	one := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{}}}
	empty := v1.PodStatus{
		PodIPs: []v1.PodIP{}, AllocatedResources: v1.ResourceList{}, InitContainerStatuses: []v1.ContainerStatus{},
		ContainerStatuses: []v1.ContainerStatus{{VolumeMounts: []v1.VolumeMountStatus{}, AllocatedResources: v1.ResourceList{}}},
	}
	started := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Started: new(false)}}}
	noResources := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Resources: &v1.ResourceRequirements{}}}}
	noUser := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{User: &v1.ContainerUser{}}}}
	for _, row := range []comparison{
		{"nil is empty", one, empty, true},
		{"a quantity in other units", withCPU("1"), withCPU("1000m"), true},
		{"a large quantity in other units", withCPU("100e18"), withCPU("100000000000000000000"), true},
		{"another quantity", withCPU("1"), withCPU("1001m"), false},
		{"a quantity of zero is not none", withCPU("0"), one, false},
		{"an instant in another zone", since(noon), since(noon.In(time.FixedZone("east", 3600))), true},
		{"another instant", since(noon), since(noon.Add(time.Second)), false},
		{"nil differs from a pointer to false", one, started, false},
		{"nil differs from empty resources", one, noResources, false},
		{"nil differs from an empty user", one, noUser, false},
		{"addresses are a list", v1.PodStatus{PodIPs: []v1.PodIP{{IP: "a"}, {IP: "b"}}},
			v1.PodStatus{PodIPs: []v1.PodIP{{IP: "b"}, {IP: "a"}}}, false},
	} {
		row.run(t)
	}
}

func TestE6_NormalizedStatusesAreComparedPlaceByPlace(t *testing.T) {
	sorted := v1.PodStatus{ContainerStatuses: parseStatuses(t, "a:running b:running")}
	swapped := v1.PodStatus{ContainerStatuses: parseStatuses(t, "b:running a:running")}
	if podrules.Equal(&sorted, &swapped) {
		t.Error("Equal takes normalized statuses, so that another order is a difference")
	}
	if podrules.NeedsReconcile(&v1.Pod{}, &swapped, &sorted) {
		t.Error("NeedsReconcile takes a raw status, so that its order does not count")
	}
}

func TestE7_OfTwoConditionsWithOneTypeTheLastCounts(t *testing.T) {
	for _, row := range []comparison{
		{"the last ones agree", withConditions("Ready=False Ready=True"), withConditions("Ready=True"), true},
		{"the last ones differ", withConditions("Ready=True Ready=False"), withConditions("Ready=True"), false},
		{"same types in place, the last ones agree", withConditions("Ready=False Ready=True"), withConditions("Ready=Unknown Ready=True"), true},
		{"twice one type is not two types", withConditions("Ready=True Ready=True"), withConditions("Ready=True Initialized=True"), false},
	} {
		row.run(t)
	}
}

// started is a normalized status that Unchanged can find unchanged.
func startedStatus(t *testing.T) *v1.PodStatus {
	t.Helper()
	return &v1.PodStatus{
		ObservedGeneration: 2, Phase: v1.PodRunning, StartTime: &metav1.Time{Time: noon},
		ContainerStatuses: parseStatuses(t, "a:running b:exited(1)"),
	}
}

func TestU2_G3_UnchangedAsksThePodForTheGeneration(t *testing.T) {
	for _, row := range []struct {
		story    string
		pod      int64
		incoming int64
		want     bool
	}{
		{"the reporter's own number counts for nothing", 2, 9, true},
		{"an older pod object does not decrease it", 1, 0, true},
		{"a newer pod object is news", 3, 2, false},
	} {
		incoming := startedStatus(t)
		incoming.ObservedGeneration = row.incoming
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: row.pod}}
		if got := podrules.Unchanged(pod, startedStatus(t), incoming); got != row.want {
			t.Errorf("%s: Unchanged = %v, want %v", row.story, got, row.want)
		}
	}
}

func TestU8_UnchangedLooksOnlyForAMissingStartTime(t *testing.T) {
	incoming := startedStatus(t)
	incoming.StartTime = &metav1.Time{Time: noon.Add(time.Hour)}
	if !podrules.Unchanged(&v1.Pod{}, startedStatus(t), incoming) {
		t.Error("the cached start time wins, so that another one is no news")
	}
	for _, missing := range []*metav1.Time{nil, {}} {
		cached := startedStatus(t)
		cached.StartTime = missing
		if podrules.Unchanged(&v1.Pod{}, cached, incoming) {
			t.Errorf("a cached start time of %v gets replaced, which is news", missing)
		}
	}
}

func TestTerminalIsFinal_AnotherPhaseIsNoNews(t *testing.T) {
	cached, incoming := startedStatus(t), startedStatus(t)
	cached.Phase, cached.Reason = v1.PodFailed, "Evicted"
	if !podrules.Unchanged(&v1.Pod{}, cached, incoming) {
		t.Error("Running after Failed is pinned to Failed, so that nothing changes")
	}
	incoming.Phase = v1.PodFailed
	if podrules.Unchanged(&v1.Pod{}, cached, incoming) {
		t.Error("Failed with another reason is news")
	}
}

func TestUnchanged_ReadsARawStatusAsIfNormalized(t *testing.T) {
	pod := parsePod(t, "init=one init=two app=a app=b")
	long := strings.Repeat("☃", 5000)
	raw := &v1.PodStatus{
		StartTime:             &metav1.Time{Time: noon},
		InitContainerStatuses: parseStatuses(t, "two:exited(0) stray:waiting one:exited(0)"),
		ContainerStatuses:     parseStatuses(t, "b:exited(1) a:running"),
	}
	raw.ContainerStatuses[0].State.Terminated.Message = long
	raw.ContainerStatuses[1].State.Running.StartedAt = metav1.NewTime(noon.Add(time.Millisecond))
	raw.InitContainerStatuses[0].State.Terminated.Message = "stray \xff byte"
	raw.InitContainerStatuses[0].State.Terminated.ContainerID = "process://\xff"
	running := &raw.ContainerStatuses[1]
	running.Image, running.ImageID, running.ContainerID = "app:\xff", "sha256:\xff", "process://\xff"
	cached := podrules.Normalize(pod, raw)
	if !podrules.Unchanged(pod, &cached, raw) {
		t.Fatal("a status is not unchanged against its own normal form")
	}

	for story, change := range map[string]func(*v1.PodStatus){
		"a byte before the cut":        func(s *v1.PodStatus) { s.ContainerStatuses[0].State.Terminated.Message = "x" + long },
		"a message shorter than cut":   func(s *v1.PodStatus) { s.ContainerStatuses[0].State.Terminated.Message = long[:30] },
		"a whole second later":         func(s *v1.PodStatus) { s.ContainerStatuses[1].State.Running.StartedAt.Time = noon.Add(time.Second) },
		"another stray text":           func(s *v1.PodStatus) { s.InitContainerStatuses[0].State.Terminated.Message = "stray \xff bytes" },
		"a shorter stray text":         func(s *v1.PodStatus) { s.InitContainerStatuses[0].State.Terminated.Message = "stray \xff" },
		"a container less":             func(s *v1.PodStatus) { s.ContainerStatuses = s.ContainerStatuses[:1] },
		"another container":            func(s *v1.PodStatus) { s.ContainerStatuses[0].Name = "c" },
		"one name twice, one not once": func(s *v1.PodStatus) { s.ContainerStatuses[0] = s.ContainerStatuses[1] },
	} {
		other := raw.DeepCopy()
		change(other)
		if podrules.Unchanged(pod, &cached, other) {
			t.Errorf("%s: not noticed", story)
		}
	}
}

func TestN2_AContainerMoreInTheSpecCutsACachedMessageAgain(t *testing.T) {
	pod := parsePod(t, "app=a app=b")
	raw := startedStatus(t)
	raw.ContainerStatuses[1].State.Terminated.Message = strings.Repeat("m", 6144)
	cached := podrules.Normalize(pod, raw)
	if !podrules.Unchanged(pod, &cached, raw) {
		t.Fatal("the message fits: unchanged")
	}
	pod.Spec.EphemeralContainers = make([]v1.EphemeralContainer, 1)
	if podrules.Unchanged(pod, &cached, raw) {
		t.Error("a debug container was added, the message fits no more: not noticed")
	}
}

func TestUnchanged_ContainersThatAreThereTwice(t *testing.T) {
	pod := &v1.Pod{}
	raw := startedStatus(t)
	raw.ContainerStatuses = parseStatuses(t, "b:running a:exited(1) a:exited(2)")
	cached := podrules.Normalize(pod, raw)
	if !podrules.Unchanged(pod, &cached, raw) {
		t.Error("a status is not unchanged against its own normal form")
	}
	raw.ContainerStatuses = parseStatuses(t, "b:running a:exited(2) a:exited(1)")
	if podrules.Unchanged(pod, &cached, raw) {
		t.Error("two statuses of one name have changed places: not noticed")
	}
}

func TestUnchanged_AllocatesNothing(t *testing.T) {
	pod := benchPod()
	pod.Spec.InitContainers = parsePod(t, "init=one sidecar=two").Spec.InitContainers
	pod.Status.InitContainerStatuses = parseStatuses(t, "two:running one:exited(0)")
	pod.Status.InitContainerStatuses[1].State.Terminated.Message = "stray \xff" + strings.Repeat("é", 5000)
	pod.Status.ContainerStatuses[0].User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{SupplementalGroups: []int64{1}}}
	cached := podrules.Normalize(pod, &pod.Status)
	incoming := reporter(&pod.Status)
	incoming.Conditions[0], incoming.Conditions[1] = incoming.Conditions[1], incoming.Conditions[0]
	normal := podrules.Normalize(pod, incoming)
	for name, ask := range map[string]func() bool{
		"Unchanged":       func() bool { return podrules.Unchanged(pod, &cached, incoming) },
		"Equal":           func() bool { return podrules.Equal(&cached, &normal) },
		"!NeedsReconcile": func() bool { return !podrules.NeedsReconcile(pod, incoming, &cached) },
	} {
		if !ask() {
			t.Errorf("%s: want true", name)
		}
		if allocs := testing.AllocsPerRun(50, func() { ask() }); allocs != 0 {
			t.Errorf("%s allocates %v times, want 0", name, allocs)
		}
	}
}
