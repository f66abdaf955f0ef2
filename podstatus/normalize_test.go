package podstatus_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
)

func TestN1_TimesAreInWholeSeconds(t *testing.T) {
	at := metav1.NewTime(noon.Add(999 * time.Millisecond))
	ended := v1.ContainerState{
		Running:    &v1.ContainerStateRunning{StartedAt: at},
		Terminated: &v1.ContainerStateTerminated{StartedAt: at, FinishedAt: at},
	}
	list := []v1.ContainerStatus{{State: ended, LastTerminationState: ended}}
	got := podrules.Normalize(&v1.Pod{}, &v1.PodStatus{
		StartTime:         &at,
		Conditions:        []v1.PodCondition{{LastProbeTime: at, LastTransitionTime: at}},
		ContainerStatuses: list, InitContainerStatuses: list, EphemeralContainerStatuses: list,
	})
	checkTime(t, "start time", *got.StartTime, noon)
	checkTime(t, "probe time", got.Conditions[0].LastProbeTime, noon)
	checkTime(t, "transition time", got.Conditions[0].LastTransitionTime, noon)
	for _, list := range [][]v1.ContainerStatus{got.ContainerStatuses, got.InitContainerStatuses, got.EphemeralContainerStatuses} {
		for _, state := range []v1.ContainerState{list[0].State, list[0].LastTerminationState} {
			checkTime(t, "running since", state.Running.StartedAt, noon)
			checkTime(t, "started", state.Terminated.StartedAt, noon)
			checkTime(t, "finished", state.Terminated.FinishedAt, noon)
		}
	}
}

func TestN1_AStartTimeOfZeroIsNone(t *testing.T) {
	got := podrules.Normalize(&v1.Pod{}, &v1.PodStatus{StartTime: &metav1.Time{}})
	if got.StartTime != nil {
		t.Errorf("a start time of zero is sent as null and comes back as nil, but normalizes to %v", got.StartTime)
	}
}

// normalMessage is what normalizing makes of a termination message, current and last.
func normalMessage(t *testing.T, pod *v1.Pod, message string) string {
	t.Helper()
	ended := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Message: message}}
	got := podrules.Normalize(pod, &v1.PodStatus{
		ContainerStatuses: []v1.ContainerStatus{{State: ended, LastTerminationState: ended}},
	}).ContainerStatuses[0]
	if got.State.Terminated.Message != got.LastTerminationState.Terminated.Message {
		t.Errorf("current and last message are normalized differently")
	}
	return got.State.Terminated.Message
}

func TestN2_MessagesShareABudgetByContainersOfTheSpec(t *testing.T) {
	for _, row := range []struct {
		story, pod string
		want       int
	}{
		{"no container in the spec", "", 12288},
		{"one container", "app=a", 12288},
		{"init containers and sidecars count", "app=a init=b sidecar=c", 4096},
		{"the share is rounded down", "app=a app=b app=c app=d app=e", 2457},
	} {
		if got := len(normalMessage(t, parsePod(t, row.pod), strings.Repeat("m", 20000))); got != row.want {
			t.Errorf("%s: the message keeps %d bytes, want %d", row.story, got, row.want)
		}
	}
	pod := parsePod(t, "app=a")
	pod.Spec.EphemeralContainers = make([]v1.EphemeralContainer, 1)
	if got := len(normalMessage(t, pod, strings.Repeat("m", 20000))); got != 6144 {
		t.Errorf("an ephemeral container counts: the message keeps %d bytes, want 6144", got)
	}
	if got := normalMessage(t, pod, "short"); got != "short" {
		t.Errorf("a short message became %q", got)
	}
}

func TestN3_MessagesAreCutBetweenRunes(t *testing.T) {
	pod := parsePod(t, "app=a app=b app=c app=d app=e") // 2457 bytes each
	for _, row := range []struct {
		story, message, want string
	}{
		{"the limit is within é", strings.Repeat("é", 3000), strings.Repeat("é", 1228)},
		{"the limit is within ☃", "x" + strings.Repeat("☃", 3000), "x" + strings.Repeat("☃", 818)},
		{"the limit is after ☃", strings.Repeat("☃", 3000), strings.Repeat("☃", 819)},
		{"the limit is within 🙂", strings.Repeat("🙂", 3000), strings.Repeat("🙂", 614)},
		{"stray bytes become what JSON makes of them", "a\xff\xfeb", "a\uFFFD\uFFFDb"},
		{"and count as long as they have become", strings.Repeat("\xff", 2457), strings.Repeat("\uFFFD", 819)},
	} {
		if got := normalMessage(t, pod, row.message); got != row.want {
			t.Errorf("%s: got %d bytes ending in %q, want %d ending in %q", row.story,
				len(got), got[max(len(got)-6, 0):], len(row.want), row.want[max(len(row.want)-6, 0):])
		}
	}
}

func TestN3_NamesOfImagesAndContainersAreWhatJSONMakesOfThem(t *testing.T) {
	raw := parseStatuses(t, "a:exited(1)")
	raw[0].Image, raw[0].ImageID, raw[0].ContainerID = "app:\xff", "sha256:\xff", "process://\xff"
	raw[0].State.Terminated.ContainerID = "process://\xff"
	got := podrules.Normalize(&v1.Pod{}, &v1.PodStatus{ContainerStatuses: raw}).ContainerStatuses[0]
	check(t, "image", got.Image, "app:\uFFFD")
	check(t, "image ID", got.ImageID, "sha256:\uFFFD")
	check(t, "container ID", got.ContainerID, "process://\uFFFD")
	check(t, "ID of the ended container", got.State.Terminated.ContainerID, "process://\uFFFD")
}

func TestN4_ContainersAreSortedByNameAndInitContainersBySpec(t *testing.T) {
	pod := parsePod(t, "init=setup sidecar=proxy init=migrate app=b app=a")
	got := podrules.Normalize(pod, &v1.PodStatus{
		InitContainerStatuses:      parseStatuses(t, "zebra:none migrate:none ant:none setup:none proxy:none"),
		ContainerStatuses:          parseStatuses(t, "b:none c:none a:none"),
		EphemeralContainerStatuses: parseStatuses(t, "y:none x:none"),
	})
	check(t, "init containers in spec order, then unknown names", describeStates(got.InitContainerStatuses),
		"setup:none proxy:none migrate:none ant:none zebra:none")
	check(t, "regular containers by name, not by spec", describeStates(got.ContainerStatuses), "a:none b:none c:none")
	check(t, "ephemeral containers by name", describeStates(got.EphemeralContainerStatuses), "x:none y:none")
}

func TestN4_TwoStatusesOfOneNameKeepTheirOrder(t *testing.T) {
	got := podrules.Normalize(&v1.Pod{}, &v1.PodStatus{
		ContainerStatuses: parseStatuses(t, "b:running a:exited(1) b:waiting a:exited(2)"),
	})
	check(t, "duplicates", describeStates(got.ContainerStatuses), "a:exited(1) a:exited(2) b:running b:waiting")
}

func TestN5_ConditionsKeepTheirOrder(t *testing.T) {
	got := podrules.Normalize(&v1.Pod{}, &v1.PodStatus{Conditions: parseConditions("Ready=True Initialized=True x.io/a=True")})
	check(t, "conditions", describeAll(got.Conditions), "Ready=True, Initialized=True, x.io/a=True")
}

func describeAll(conditions []v1.PodCondition) string {
	words := make([]string, 0, len(conditions))
	for _, c := range conditions {
		words = append(words, describe(c))
	}
	return strings.Join(words, ", ")
}

func checkNormalize(t *rapid.T) {
	pod, raw := drawPod(t), drawStatus(t)
	before := raw.DeepCopy()
	normal := podrules.Normalize(pod, raw)
	if again := podrules.Normalize(pod, &normal); !equality.Semantic.DeepEqual(normal, again) {
		t.Fatalf("normalizing twice is not the same as once\nonce:  %+v\ntwice: %+v", normal, again)
	}
	if back := stored(t, &normal); !podrules.Equal(&normal, back) || podrules.NeedsReconcile(pod, back, &normal) {
		t.Fatalf("the API would hand back something else\nsent: %s\nback: %s", mustMarshal(t, normal), mustMarshal(t, back))
	}
	if raw := normalAddresses(raw, &normal); podrules.NeedsReconcile(pod, raw, &normal) {
		t.Fatalf("the raw status does not compare like its normal form\nraw: %+v\nnormal: %+v", raw, normal)
	}
	limit := 12288 / max(1, len(pod.Spec.Containers)+len(pod.Spec.InitContainers)+len(pod.Spec.EphemeralContainers))
	for _, c := range normal.ContainerStatuses {
		if end := c.State.Terminated; end != nil && (len(end.Message) > limit || !utf8.ValidString(end.Message)) {
			t.Fatalf("a message of %d bytes, limit %d, valid %v", len(end.Message), limit, utf8.ValidString(end.Message))
		}
	}
	scribble(&normal)
	if !equality.Semantic.DeepEqual(raw, before) {
		t.Fatalf("the input was written to, or shares memory with the result\nbefore: %+v\nafter: %+v", before, raw)
	}
}

// normalAddresses returns a raw status whose addresses agree, as the API server keeps them.
func normalAddresses(raw, normal *v1.PodStatus) *v1.PodStatus {
	stored := *raw
	stored.PodIP, stored.PodIPs, stored.HostIP, stored.HostIPs = normal.PodIP, normal.PodIPs, normal.HostIP, normal.HostIPs
	return &stored
}

// scribble writes into everything that a status points to.
func scribble(status *v1.PodStatus) {
	if status.StartTime != nil {
		*status.StartTime = metav1.Time{}
	}
	clear(status.AllocatedResources)
	if status.Resources != nil {
		*status.Resources = v1.ResourceRequirements{}
	}
	clear(status.Conditions)
	clear(status.PodIPs)
	clear(status.HostIPs)
	clear(status.ResourceClaimStatuses)
	for _, list := range [][]v1.ContainerStatus{
		status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for _, c := range list {
			clear(c.AllocatedResources)
			clear(c.VolumeMounts)
			if c.State.Running != nil {
				*c.State.Running = v1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}
			}
			if c.State.Terminated != nil {
				*c.State.Terminated = v1.ContainerStateTerminated{ExitCode: 99}
			}
			if c.Started != nil {
				*c.Started = !*c.Started
			}
		}
		clear(list)
	}
}

func TestNormalize(t *testing.T) { rapid.Check(t, checkNormalize) }

func FuzzNormalize(f *testing.F) { fuzz(f, checkNormalize) }
