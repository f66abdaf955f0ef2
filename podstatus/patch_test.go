package podstatus_test

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
)

const testUID types.UID = "b7a2f1d0-0000-4000-8000-000000000001"

// apply does what the API server does with a patch.
func apply(t fataler, base *v1.PodStatus, patch []byte) *v1.PodStatus {
	if patch == nil {
		return base
	}
	patched, err := strategicpatch.StrategicMergePatch(mustMarshal(t, v1.Pod{Status: *base}), patch, v1.Pod{})
	if err != nil {
		t.Fatalf("the patch does not apply: %v\npatch: %s", err, patch)
	}
	var pod v1.Pod
	if err := json.Unmarshal(patched, &pod); err != nil {
		t.Fatalf("the patched pod does not decode: %v\n%s", err, patched)
	}
	if pod.UID != testUID {
		t.Fatalf("the patch carries UID %q, want %q\npatch: %s", pod.UID, testUID, patch)
	}
	return &pod.Status
}

func mustMarshal(t fataler, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	return data
}

// twoWay is the oracle of Patch: apimachinery's two-way strategic merge patch.
func twoWay(t fataler, base, desired *v1.PodStatus) []byte {
	patch, err := strategicpatch.CreateTwoWayMergePatch(
		mustMarshal(t, v1.Pod{Status: *base}),
		mustMarshal(t, v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: testUID}, Status: *desired}), v1.Pod{})
	if err != nil {
		t.Fatalf("two-way merge patch: %v", err)
	}
	return patch
}

func mustPatch(t fataler, base, desired *v1.PodStatus) []byte {
	patch, err := podrules.Patch(testUID, base, desired)
	if err != nil {
		t.Fatalf("Patch: %v", err)
	}
	return patch
}

// stored is a status as the API server holds it: through JSON and back.
func stored(t fataler, status *v1.PodStatus) *v1.PodStatus {
	var back v1.PodStatus
	if err := json.Unmarshal(mustMarshal(t, status), &back); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	return &back
}

func checkPatch(t *rapid.T) {
	pod := drawPod(t)
	first := drawStatus(t)
	base := stored(t, first)
	cached := podrules.Normalize(pod, drawOther(t, first))
	desired := podrules.Merge(pod, base, &cached, rapid.Bool().Draw(t, "could run"), epoch)
	patch := mustPatch(t, base, &desired)
	got, want := apply(t, base, patch), stored(t, &desired)
	if !sameInAPI(got, want) {
		t.Fatalf("patched: %s\nwant: %s\nbase: %s\npatch: %s", mustMarshal(t, got), mustMarshal(t, want), mustMarshal(t, base), patch)
	}
	if again := mustPatch(t, got, &desired); again != nil {
		t.Fatalf("the same patch again should be nothing, got %s\nfirst: %s", again, patch)
	}
	if !distinct(base.Conditions, conditionType) {
		return // the two-way merge is at a loss
	}
	if oracle := apply(t, base, twoWay(t, base, &desired)); !sameInAPI(got, oracle) {
		t.Fatalf("patched: %s\ntwo-way: %s\nbase: %s\npatch: %s", mustMarshal(t, got), mustMarshal(t, oracle), mustMarshal(t, base), patch)
	}
}

func TestPatchAgreesWithTwoWayMerge(t *testing.T) { rapid.Check(t, checkPatch) }

func FuzzPatch(f *testing.F) { fuzz(f, checkPatch) }
