//go:build real

package kubeletapi_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/test/doors"
)

// A kubelet takes any UID in these paths if the name fits. Here a UID names a pod, and its successor of the same name is
// another one.
var wrongUID = map[string]string{
	"POST /exec/default/web/wrong-uid/main?command=echo&output=1": `container not found ("main")`,
	"POST /run/default/web/wrong-uid/main?cmd=echo+hello":         `container not found ("main")`,
}

// Each kind of credentials on each path is let in or refused as by a stock kubelet, with its code and text.
func TestRealServer_DoorsAreThoseOfAStockKubelet(t *testing.T) {
	const node = "doors"
	api := shared.Server(t)
	pki := filepath.Join(api.Process.DataDir(), "pki")
	roots, err := kubeletapi.NewRoots(filepath.Join(pki, "ca.crt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt := newFakeRuntime()
	address := start(t, kubeletapi.Options{
		NodeName: node, Client: api.Node(t, node), ClientCA: roots, Runtime: rt, Pods: &fakePods{pods: []*v1.Pod{webPod(t, rt)}},
	})
	clients, err := doors.Clients(t.Context(), api.Admin(), pki, node)
	if err != nil {
		t.Fatal(err)
	}
	got, err := doors.Try(t.Context(), address, clients, doors.Requests())
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile("testdata/doors.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, err := doors.Read(string(recorded))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || len(want) < 1000 {
		t.Fatalf("%d answers of statusd, %d of the kubelet: record them again with make doors", len(got), len(want))
	}
	for i := range want {
		expected := want[i]
		passed := expected.Status != 401 && expected.Status != 403
		if passed && slices.Contains(doors.NotServed(), expected.Request) {
			expected.Status, expected.Body = 404, "404: Page Not Found"
		}
		if text, differs := wrongUID[expected.Request]; passed && differs {
			expected.Status, expected.Body = 500, text
		}
		if got[i] != expected {
			t.Errorf("%s, %s:\n got %d %q\nwant %d %q", expected.Client, expected.Request, got[i].Status, got[i].Body, expected.Status, expected.Body)
		}
	}
}
