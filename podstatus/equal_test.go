package podstatus_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
)

// plainEqual is the oracle of Equal: what does not count is cut away, what is left goes
// through apimachinery's reflection.
func plainEqual(a, b *v1.PodStatus) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, s := range []*v1.PodStatus{a, b} {
		s.ResourceClaimStatuses, s.ExtendedResourceClaimStatus, s.NodeAllocatableResourceClaimStatuses = nil, nil, nil
		byType := map[v1.PodConditionType]v1.PodCondition{}
		for _, c := range s.Conditions {
			byType[c.Type] = c
		}
		s.Conditions = nil
		for _, t := range slices.Concat(ownedTypes, []v1.PodConditionType{v1.DisruptionTarget}) {
			if c, ok := byType[t]; ok {
				c.LastProbeTime, c.LastTransitionTime, c.ObservedGeneration = metav1.Time{}, metav1.Time{}, 0
				s.Conditions = append(s.Conditions, c)
			}
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

func checkEqual(t *rapid.T) {
	pod := drawPod(t)
	first := drawStatus(t)
	a, b := podrules.Normalize(pod, first), podrules.Normalize(pod, drawOther(t, first))
	if got, want := podrules.Equal(&a, &b), plainEqual(&a, &b); got != want {
		t.Fatalf("Equal = %v, semantic equality of what counts = %v\na: %+v\nb: %+v", got, want, a, b)
	}
	if !podrules.Equal(&a, &a) || podrules.Equal(&a, &b) != podrules.Equal(&b, &a) {
		t.Fatalf("Equal is not reflexive and symmetric\na: %+v\nb: %+v", a, b)
	}
}

func TestEqualAgreesWithSemanticEquality(t *testing.T) { rapid.Check(t, checkEqual) }

func FuzzEqual(f *testing.F) { fuzz(f, checkEqual) }

func checkUnchanged(t *rapid.T) {
	pod := drawPod(t)
	first := drawStatus(t)
	cached := podrules.Normalize(pod, first)
	incoming := drawOther(t, first)
	incoming.ObservedGeneration = pod.Generation // U2
	next := podrules.Next(pod, &cached, incoming, epoch)
	if got, want := podrules.Unchanged(pod, &cached, incoming), podrules.Equal(&cached, &next); got != want {
		t.Fatalf("Unchanged = %v, but podrules.Equal(cached, podrules.Next(...)) = %v\ncached: %+v\nincoming: %+v\nnext: %+v",
			got, want, cached, incoming, next)
	}
}

func TestUnchangedAgreesWithNextAndEqual(t *testing.T) { rapid.Check(t, checkUnchanged) }

func FuzzUnchanged(f *testing.F) { fuzz(f, checkUnchanged) }

func TestNoiseIsUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		first := drawStatus(t)
		first.StartTime = &metav1.Time{Time: epoch}
		pod.Generation = first.ObservedGeneration
		cached := podrules.Normalize(pod, first)
		if noisy := drawNoise(t, first); !podrules.Unchanged(pod, &cached, noisy) {
			t.Fatalf("a status that differs only in order, units and fractions counts as changed\ncached: %+v\nincoming: %+v",
				cached, noisy)
		}
	})
}
