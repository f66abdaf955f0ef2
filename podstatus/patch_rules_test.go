package podstatus_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
)

// checkPatchIs compares the status part of a patch, "" for no patch, as JSON.
func checkPatchIs(t *testing.T, story string, base, desired *v1.PodStatus, want string) {
	t.Helper()
	patch := mustPatch(t, base, desired)
	if want == "" {
		if patch != nil {
			t.Errorf("%s: got %s, want nothing to send", story, patch)
		}
		return
	}
	want = `{"metadata":{"uid":"` + string(testUID) + `"},"status":` + want + `}`
	if !sameJSON(t, patch, []byte(want)) {
		t.Errorf("%s:\n got %s\nwant %s", story, patch, want)
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	for data, into := range map[*[]byte]*any{&a: &x, &b: &y} {
		if err := json.Unmarshal(*data, into); err != nil {
			t.Fatalf("not JSON: %v\n%s", err, *data)
		}
	}
	return equality.Semantic.DeepEqual(x, y)
}

func TestP1_TheUIDIsAlwaysInThePatch(t *testing.T) {
	patch := string(mustPatch(t, parsePhase("Pending"), parsePhase("Running")))
	want := `{"metadata":{"uid":"` + string(testUID) + `"},"status":{"phase":"Running"}}`
	check(t, "a phase", patch, want)
}

func TestP2_NothingToSendIsNil(t *testing.T) {
	for _, row := range []struct {
		story         string
		base, desired *v1.PodStatus
	}{
		{"nothing at all", &v1.PodStatus{}, &v1.PodStatus{}},
		{"the same", fullStatus(), fullStatus()},
		{"conditions in another order", parsePhase("Running Ready=True Initialized=True"), parsePhase("Running Initialized=True Ready=True")},
		{"nil for empty", &v1.PodStatus{}, &v1.PodStatus{PodIPs: []v1.PodIP{}, ContainerStatuses: []v1.ContainerStatus{}}},
		{"fractions of a second", &v1.PodStatus{StartTime: &metav1.Time{Time: noon}},
			&v1.PodStatus{StartTime: &metav1.Time{Time: noon.Add(time.Millisecond)}}},
		{"a start time of zero", &v1.PodStatus{}, &v1.PodStatus{StartTime: &metav1.Time{}}},
		{"other units", ptr(withCPU("1")), ptr(withCPU("1000m"))},
		{"bytes that JSON cannot carry", &v1.PodStatus{Message: "a\uFFFD"}, &v1.PodStatus{Message: "a\xff"}},
	} {
		checkPatchIs(t, row.story, row.base, row.desired, "")
	}
}

func ptr[T any](value T) *T { return &value }

func TestP3_NoResourceVersionSoThatTheLastWriterOfAFieldWins(t *testing.T) {
	var patch map[string]map[string]any
	if err := json.Unmarshal(mustPatch(t, &v1.PodStatus{}, fullStatus()), &patch); err != nil {
		t.Fatal(err)
	}
	if len(patch) != 2 || len(patch["metadata"]) != 1 || patch["metadata"]["uid"] != string(testUID) {
		t.Errorf("want metadata with the UID alone, and a status; got metadata %v in %v", patch["metadata"], patch)
	}
}

func TestP4_ConditionsMergeByType(t *testing.T) {
	changed := parsePhase("Running Ready=False Initialized=True")
	changed.Conditions[0].Reason, changed.Conditions[0].LastTransitionTime = "NotYet", metav1.NewTime(noon)
	cleared := parsePhase("Running Ready=False")
	for _, row := range []struct {
		story         string
		base, desired *v1.PodStatus
		want          string
	}{
		{"of a changed one what changed", parsePhase("Running Ready=True Initialized=True"), changed,
			`{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"Initialized"}],
			  "conditions":[{"type":"Ready","status":"False","reason":"NotYet","lastTransitionTime":"2026-08-01T12:00:00Z"}]}`},
		{"what goes away is null", changed, parsePhase("Running Ready=False Initialized=True"),
			`{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"Initialized"}],
			  "conditions":[{"type":"Ready","reason":null,"lastTransitionTime":null}]}`},
		{"a new one whole", parsePhase("Running Ready=False"), parsePhase("Running Ready=False Initialized=True"),
			`{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"Initialized"}],
			  "conditions":[{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":null}]}`},
		{"all new ones without an order", parsePhase("Running"), cleared,
			`{"conditions":[{"type":"Ready","status":"False","lastProbeTime":null,"lastTransitionTime":null}]}`},
		{"one that is gone", parsePhase("Running PodScheduled=True Ready=False"), cleared,
			`{"$setElementOrder/conditions":[{"type":"Ready"}],"conditions":[{"$patch":"delete","type":"PodScheduled"}]}`},
		{"the last one is gone: others may hold conditions that we do not know", cleared, parsePhase("Running"),
			`{"$setElementOrder/conditions":[],"conditions":[{"$patch":"delete","type":"Ready"}]}`},
		{"one that the API holds twice", parsePhase("Running Ready=True Ready=False"), cleared,
			`{"$setElementOrder/conditions":[{"type":"Ready"}],"conditions":[{"$patch":"delete","type":"Ready"},
			  {"type":"Ready","status":"False","lastProbeTime":null,"lastTransitionTime":null}]}`},
		{"a shared one that the API holds twice", parsePhase("Running DisruptionTarget=Unknown DisruptionTarget=False"),
			parsePhase("Running DisruptionTarget=True"), `{"$setElementOrder/conditions":[{"type":"DisruptionTarget"}],
			  "conditions":[{"$patch":"delete","type":"DisruptionTarget"},
			  {"type":"DisruptionTarget","status":"True","lastProbeTime":null,"lastTransitionTime":null}]}`},
		{"a foreign one only in the order", parsePhase("Running x.io/a=True Ready=True"), parsePhase("Running x.io/a=True Ready=False"),
			`{"$setElementOrder/conditions":[{"type":"x.io/a"},{"type":"Ready"}],"conditions":[{"type":"Ready","status":"False"}]}`},
	} {
		checkPatchIs(t, row.story, row.base, row.desired, row.want)
	}
}

func TestP4_ForeignConditionsAreNeverWrittenWhateverTheyAre(t *testing.T) {
	checkPatchIs(t, "changed", parsePhase("Running x.io/a=True"), parsePhase("Running x.io/a=False"), "")
	checkPatchIs(t, "gone", parsePhase("Running x.io/a=True"), parsePhase("Running"), "")
	checkPatchIs(t, "new", parsePhase("Running"), parsePhase("Running x.io/a=True"), "")
	checkPatchIs(t, "a shared one is not removed", parsePhase("Running DisruptionTarget=True"), parsePhase("Running"), "")
}

func TestP4_ClaimStatusesAreNeverWritten(t *testing.T) {
	checkPatchIs(t, "all three", &v1.PodStatus{}, &v1.PodStatus{
		ResourceClaimStatuses:                []v1.PodResourceClaimStatus{{Name: "gpu"}},
		ExtendedResourceClaimStatus:          &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"},
		NodeAllocatableResourceClaimStatuses: []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "y"}},
	}, "")
}

func TestP4_AddressesMergeByIPAndKeepTheirOrder(t *testing.T) {
	withIPs := func(ips ...string) *v1.PodStatus {
		return &v1.PodStatus{PodIPs: convertIPs[v1.PodIP](ips), HostIPs: convertIPs[v1.HostIP](ips)}
	}
	for _, row := range []struct {
		story         string
		base, desired *v1.PodStatus
		want          string
	}{
		{"first ones", withIPs(), withIPs("a", "b"), `{"IPS":[{"ip":"a"},{"ip":"b"}]}`},
		{"none any more", withIPs("a"), withIPs(), `{"IPS":null}`},
		{"one more", withIPs("a"), withIPs("b", "a"), `{"IPS":[{"ip":"b"}],"$setElementOrder/IPS":[{"ip":"b"},{"ip":"a"}]}`},
		{"another", withIPs("a"), withIPs("b"), `{"IPS":[{"ip":"b"},{"$patch":"delete","ip":"a"}],"$setElementOrder/IPS":[{"ip":"b"}]}`},
		{"another order", withIPs("a", "b"), withIPs("b", "a"), `{"$setElementOrder/IPS":[{"ip":"b"},{"ip":"a"}]}`},
	} {
		want := strings.TrimSuffix(strings.ReplaceAll(row.want, "IPS", "podIPs"), "}") + "," +
			strings.TrimPrefix(strings.ReplaceAll(row.want, "IPS", "hostIPs"), "{")
		checkPatchIs(t, row.story, row.base, row.desired, want)
	}
}

func TestP4_ContainerStatusesAreReplacedWhole(t *testing.T) {
	base := &v1.PodStatus{ContainerStatuses: parseStatuses(t, "a:running b:running"), InitContainerStatuses: parseStatuses(t, "i:exited(0)")}
	desired := &v1.PodStatus{ContainerStatuses: parseStatuses(t, "a:running b:running,ready")}
	patch := string(mustPatch(t, base, desired))
	for _, want := range []string{`"name":"a"`, `"name":"b"`, `"ready":true`, `"initContainerStatuses":null`} {
		if !strings.Contains(patch, want) {
			t.Errorf("the patch lacks %s: %s", want, patch)
		}
	}
	if strings.Contains(patch, "setElementOrder") {
		t.Errorf("the list does not merge, it has no order to set: %s", patch)
	}
}

func TestP4_ScalarsAreSetOrNull(t *testing.T) {
	checkPatchIs(t, "set", &v1.PodStatus{},
		&v1.PodStatus{Phase: v1.PodRunning, ObservedGeneration: 2, Message: "<a> \"b\"\n", StartTime: &metav1.Time{Time: noon}},
		`{"phase":"Running","observedGeneration":2,"message":"<a> \"b\"\n","startTime":"2026-08-01T12:00:00Z"}`)
	checkPatchIs(t, "null", &v1.PodStatus{Reason: "Evicted", ObservedGeneration: 2, PodIP: "a", StartTime: &metav1.Time{Time: noon}},
		&v1.PodStatus{}, `{"reason":null,"observedGeneration":null,"podIP":null,"startTime":null}`)
	checkPatchIs(t, "escaped", &v1.PodStatus{}, &v1.PodStatus{Reason: `C:\path`, Message: "two\nlines"},
		`{"reason":"C:\\path","message":"two\nlines"}`)
	east := metav1.NewTime(noon.In(time.FixedZone("east", 3600)))
	checkPatchIs(t, "times in UTC", &v1.PodStatus{}, &v1.PodStatus{StartTime: &east}, `{"startTime":"2026-08-01T12:00:00Z"}`)
}

func TestP4_ResourcesMergeByName(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		list := v1.ResourceList{}
		if cpu != "" {
			list[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			list[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return list
	}
	one := []v1.ResourceClaim{{Name: "gpu"}}
	for _, row := range []struct {
		story         string
		base, desired *v1.PodStatus
		want          string
	}{
		{"one changed, in its shortest form", &v1.PodStatus{AllocatedResources: list("1", "1Gi")},
			&v1.PodStatus{AllocatedResources: list("1000m", "2048Mi")}, `{"allocatedResources":{"memory":"2Gi"}}`},
		{"one gone", &v1.PodStatus{AllocatedResources: list("1", "1Gi")},
			&v1.PodStatus{AllocatedResources: list("2", "")}, `{"allocatedResources":{"cpu":"2","memory":null}}`},
		{"all gone", &v1.PodStatus{AllocatedResources: list("1", "")}, &v1.PodStatus{}, `{"allocatedResources":null}`},
		{"requirements appear, empty", &v1.PodStatus{}, &v1.PodStatus{Resources: &v1.ResourceRequirements{}}, `{"resources":{}}`},
		{"requirements go", &v1.PodStatus{Resources: &v1.ResourceRequirements{Claims: one}}, &v1.PodStatus{}, `{"resources":null}`},
		{"requirements change", &v1.PodStatus{Resources: &v1.ResourceRequirements{Limits: list("1", ""), Claims: one}},
			&v1.PodStatus{Resources: &v1.ResourceRequirements{Limits: list("2", ""), Requests: list("", "1Gi"), Claims: []v1.ResourceClaim{}}},
			`{"resources":{"limits":{"cpu":"2"},"requests":{"memory":"1Gi"},"claims":null}}`},
		{"claims change", &v1.PodStatus{Resources: &v1.ResourceRequirements{Claims: one}},
			&v1.PodStatus{Resources: &v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "nic"}}}},
			`{"resources":{"claims":[{"name":"nic"}]}}`},
	} {
		checkPatchIs(t, row.story, row.base, row.desired, row.want)
	}
}

func TestP5_APatchThatCouldHitAnotherPodIsAnError(t *testing.T) {
	patch, err := podrules.Patch("", &v1.PodStatus{}, &v1.PodStatus{Phase: v1.PodRunning})
	if err == nil || !strings.Contains(err.Error(), "UID is empty") || patch != nil {
		t.Errorf("without a UID: got patch %q and error %v, want an error that says so", patch, err)
	}
}

// Own fields only: the base may be old, and the API may have gained, lost or changed foreign
// conditions since. No patch may touch them.
func TestPatchLeavesForeignConditionsAloneWhateverTheBaseSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		first := drawStatus(t)
		base := stored(t, first)
		cached := podrules.Normalize(pod, drawOther(t, first))
		desired := podrules.Merge(pod, base, &cached, false, epoch)
		live := stored(t, drawOther(t, first))
		if !distinct(live.Conditions, conditionType) {
			return // the API server's merge is at a loss with two of one type
		}
		patch := mustPatch(t, base, &desired)
		got := apply(t, live, patch)
		byType := func(list []v1.PodCondition) map[v1.PodConditionType]v1.PodCondition {
			conditions := map[v1.PodConditionType]v1.PodCondition{}
			for _, c := range foreignOf(list) {
				conditions[c.Type] = c
			}
			return conditions
		}
		if before, after := byType(live.Conditions), byType(got.Conditions); !equality.Semantic.DeepEqual(before, after) {
			t.Fatalf("foreign conditions changed from %v to %v\npatch: %s", before, after, patch)
		}
		if !equality.Semantic.DeepEqual(live.ResourceClaimStatuses, got.ResourceClaimStatuses) {
			t.Fatalf("claim statuses changed from %v to %v", live.ResourceClaimStatuses, got.ResourceClaimStatuses)
		}
	})
}
