package podrules

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// pretend takes fields out of what is written out, as if the API had grown them since. The
// fields are ones that comparing and patching by hand leave out, so that only the generic
// means can see them.
func pretend(t *testing.T, typ reflect.Type, fields ...string) {
	t.Helper()
	before := unwritten
	t.Cleanup(func() { unwritten = before })
	less := maps.Clone(written)
	for _, field := range fields {
		words := " " + less[typ] + " "
		if !strings.Contains(words, " "+field+" ") {
			t.Fatalf("%v has no field %s", typ, field)
		}
		less[typ] = strings.TrimSpace(strings.ReplaceAll(words, " "+field+" ", " "))
	}
	unwritten = findUnwritten(less)
}

func TestU9_NothingIsUnwrittenInThisVersion(t *testing.T) {
	for typ, fields := range unwritten {
		for _, i := range fields {
			t.Errorf("the API has a field %v.%s that is compared and sent by generic means only: write it out", typ, typ.Field(i).Name)
		}
	}
}

func TestU9_NewFieldsOfAStatusAreComparedAndSent(t *testing.T) {
	pretend(t, reflect.TypeFor[v1.PodStatus](), "ResourceClaimStatuses", "ExtendedResourceClaimStatus")
	pod, now := &v1.Pod{}, time.Unix(1e9, 0)
	claims := func(names ...string) *v1.PodStatus {
		s := &v1.PodStatus{Phase: v1.PodRunning, StartTime: nil}
		for _, name := range names {
			s.ResourceClaimStatuses = append(s.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: name})
		}
		return s
	}
	cached := Next(pod, &v1.PodStatus{}, claims("a"), now)
	if Equal(&cached, claims()) || Unchanged(pod, &cached, claims("b")) || !Unchanged(pod, &cached, claims("a")) {
		t.Error("a difference in a new field is no change, or sameness is one")
	}
	api := claims("old")
	api.StartTime = cached.StartTime
	if !NeedsReconcile(pod, api, &cached) {
		t.Error("the API differs in a new field, and nothing is done about it")
	}
	if got := patched(t, api, &cached).ResourceClaimStatuses; len(got) != 1 || got[0].Name != "a" {
		t.Errorf("after the patch the API has %+v, want a", got)
	}

	// What the node leaves empty may be another's.
	empty := Next(pod, &v1.PodStatus{}, claims(), now)
	api.StartTime = empty.StartTime
	if NeedsReconcile(pod, api, &empty) {
		t.Error("a new field that the node leaves empty is put right")
	}
	merged := empty
	keepUnwritten(&merged, api)
	if patch, err := Patch("uid", api, &merged); err != nil || patch != nil {
		t.Errorf("a new field that the node leaves empty is written: %s, %v", patch, err)
	}
}

func TestU9_NewFieldsOfConditionsAndContainersAreComparedAndSent(t *testing.T) {
	pretend(t, reflect.TypeFor[v1.PodCondition](), "LastProbeTime")
	condition := func(at int64) *v1.PodStatus {
		c := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}
		c.LastProbeTime.Time = time.Unix(at, 0)
		return &v1.PodStatus{Conditions: []v1.PodCondition{c}}
	}
	if Equal(condition(1), condition(2)) || !Equal(condition(1), condition(1)) {
		t.Error("a new field of a condition does not count")
	}
	if got := patched(t, condition(1), condition(2)).Conditions[0].LastProbeTime.Unix(); got != 2 {
		t.Errorf("a new field of a condition is not sent: got %d", got)
	}

	pretend(t, reflect.TypeFor[v1.ResourceHealth](), "Health")
	container := func(health v1.ResourceHealthStatus) *v1.ContainerStatus {
		return &v1.ContainerStatus{AllocatedResourcesStatus: []v1.ResourceStatus{{Resources: []v1.ResourceHealth{{Health: health}}}}}
	}
	if sameUnwritten(container("Healthy"), container("Unhealthy")) || !sameUnwritten(container("Healthy"), container("Healthy")) {
		t.Error("a new field deep in a container status does not count")
	}
}

// patched applies the patch from base to desired as the members of a status.
func patched(t *testing.T, base, desired *v1.PodStatus) *v1.PodStatus {
	t.Helper()
	patch, err := Patch("uid", base, desired)
	if err != nil || patch == nil {
		t.Fatalf("patch %s, %v", patch, err)
	}
	var sent struct{ Status v1.PodStatus }
	if err := json.Unmarshal(patch, &sent); err != nil {
		t.Fatalf("the patch %s is no JSON: %v", patch, err)
	}
	kept := sent.Status.ResourceClaimStatuses[:0]
	for _, claim := range sent.Status.ResourceClaimStatuses { // without the orders to delete
		if claim.Name != "old" {
			kept = append(kept, claim)
		}
	}
	sent.Status.ResourceClaimStatuses = kept
	return &sent.Status
}
