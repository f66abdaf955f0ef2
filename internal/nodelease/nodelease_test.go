package nodelease_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/nodelease"
)

// lease has entries of managedFields as in "kubelet: leaseDurationSeconds renewTime".
func lease(seconds int32, entries ...string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds}}
	for _, text := range entries {
		manager, fields, _ := strings.Cut(text, ": ")
		raw := `{"f:spec":{"f:` + strings.ReplaceAll(fields, " ", `":{},"f:`) + `":{}}}`
		l.ManagedFields = append(l.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(raw)})
	}
	return l
}

func TestWritersOfALease(t *testing.T) {
	for _, c := range []struct {
		name    string
		lease   *coordinationv1.Lease
		makers  string
		foreign string // field and writer of the first foreign one
		term    time.Duration
	}{
		{"a kubelet's", lease(10, "kubelet: holderIdentity leaseDurationSeconds renewTime"), "kubelet", "", 10 * time.Second},
		{"a distribution's", lease(10, "k3s: holderIdentity leaseDurationSeconds renewTime"), "k3s", "", 10 * time.Second},
		{"duration written by another", lease(1, "kubelet: holderIdentity renewTime", "meddler: leaseDurationSeconds"), "kubelet", "leaseDurationSeconds meddler", nodelease.DefaultTerm},
		{"holder written by another", lease(10, "kubelet: leaseDurationSeconds renewTime", "meddler: holderIdentity"), "kubelet", "holderIdentity meddler", 10 * time.Second},
		{"renewed by another", lease(10, "kubelet: holderIdentity leaseDurationSeconds", "meddler: renewTime"), "kubelet", "renewTime meddler", 10 * time.Second},
		{"made by the kubelet of a distribution, renewed by a stock one since", lease(10, "k3s: holderIdentity leaseDurationSeconds", "kubelet: renewTime"), "k3s", "", 10 * time.Second},
		{"not known who", lease(10), "", "", 10 * time.Second},
		{"no duration", lease(0, "kubelet: holderIdentity leaseDurationSeconds renewTime"), "kubelet", "", nodelease.DefaultTerm},
	} {
		foreign := ""
		for _, field := range []string{"holderIdentity", "leaseDurationSeconds", "renewTime"} {
			if e := nodelease.Foreign(c.lease, "f:"+field); e != nil && foreign == "" {
				foreign = field + " " + e.Manager
			}
		}
		makers := strings.Join(slices.Sorted(maps.Keys(nodelease.Makers(c.lease))), " ")
		if term := nodelease.Term(c.lease); makers != c.makers || foreign != c.foreign || term != c.term {
			t.Errorf("%s: made by %q, foreign %q, counts for %v; want %q, %q, %v", c.name, makers, foreign, term, c.makers, c.foreign, c.term)
		}
	}
}
