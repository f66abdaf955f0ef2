package observer

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/audit/apiside"
	"github.com/statusd/statusd/internal/guard/collect"
	"github.com/statusd/statusd/internal/nodecondition"
)

// The fleet of the document.
const (
	fleetNodes   = 5000
	podsPerNode  = 30
	bookmarks    = time.Minute // a server sends one on each watch about so often
	headers      = 300         // of an answer over HTTP/2, with its frames
	bookmarkSize = 500
)

// fields are as many bytes of managedFields as a pod of a Deployment has, with its kubelet as second writer.
var fields = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"` + strings.Repeat("x", 1500) + `":{}}}}`)

func encoded(t *testing.T, object any) int {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// What observers of a whole fleet ask of an API server while nothing changes follows from their paces. docs/use/observe.md has it.
func TestCostOfAFleet_IsThatOfTheDocument(t *testing.T) {
	seconds, holder, now := int32(40), "a-node-of-a-fleet", metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))
	meta := metav1.ObjectMeta{Name: "web-6d5f8c7b9d-x7k2p", Namespace: "shop", UID: "0f7b1c9e-1111-2222-3333-444455556666", ResourceVersion: "123456789", GenerateName: "web-6d5f8c7b9d-",
		Labels: map[string]string{"app": "web", "pod-template-hash": "6d5f8c7b9d"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", FieldsV1: fields}}}
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: holder, Namespace: "kube-node-lease", UID: meta.UID, ResourceVersion: meta.ResourceVersion, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: fields}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now}}
	var pods metav1.PartialObjectMetadataList
	for range podsPerNode {
		pods.Items = append(pods.Items, metav1.PartialObjectMetadata{ObjectMeta: meta})
	}
	const condition = 400 // a patch of one condition, and the part of the Node that is not sent back

	rows := []struct {
		what  string
		pace  time.Duration
		bytes int
	}{
		{"GET of one lease, by the audit", apiside.DefaultLease, encoded(t, lease) + headers},
		{"GET of one lease, by the guard", collect.PaceAPI, encoded(t, lease) + headers},
		{"LIST of the metadata of the pods of one node", apiside.DefaultConfirm, encoded(t, pods) + headers},
		{"PATCH of the Node's status, `StatusTruthful`", nodecondition.DefaultHeartbeat, condition + headers},
		{"PATCH of the Node's status, `KubeletHealthy`", nodecondition.DefaultHeartbeat, condition + headers},
		{"bookmarks, on 2 watches", bookmarks / 2, bookmarkSize},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %d nodes with %d pods each, nothing changes | per node and minute | per second | KiB/s |\n|---|--:|--:|--:|\n", fleetNodes, podsPerNode)
	perMinute, perSecond, total := 0.0, 0.0, 0.0
	for _, r := range rows {
		minute := float64(time.Minute) / float64(r.pace)
		second := minute / 60 * fleetNodes
		kib := second * float64(r.bytes) / 1024
		fmt.Fprintf(&b, "| %s | %.1f | %.0f | %.0f |\n", r.what, minute, second, kib)
		perMinute, perSecond, total = perMinute+minute, perSecond+second, total+kib
	}
	fmt.Fprintf(&b, "| all | %.1f | %.0f | %.0f |\n| open watches | 2 per node | %d in all | |\n", perMinute, perSecond, total, 2*fleetNodes)
	document, err := os.ReadFile("../../docs/use/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(document), b.String()) {
		t.Errorf("docs/use/observe.md has another table than\n%s", b.String())
	}
}
