package kubeletside

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// Whatever answers in the place of a kubelet, by HTTP or gRPC, is read without a panic.
func FuzzPods(f *testing.F) {
	pod := &v1.Pod{Status: v1.PodStatus{Phase: v1.PodRunning}}
	encoded, err := pod.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"},"status":{"phase":"Running"}},null]}`))
	f.Add(encoded)
	overHTTP, overGRPC := newHTTPClient(Options{}), newSocketClient(Options{})
	f.Fuzz(func(_ *testing.T, body []byte) {
		if pods, err := items(body); err == nil {
			_, _ = overHTTP.decoder.all(pods)
		}
		_, _ = overGRPC.decoder.one(body)
	})
}
