package stock

import "testing"

// StartContainerd runs containerd without a kubelet for a test, which skips or fails if the machine cannot
// have one. It answers, and it ends with the test, with all containers. If the test fails, the end of its log is part of
// the output.
func StartContainerd(t testing.TB) *Containerd {
	t.Helper()
	Need(t)
	n := &Node{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(n.Tail(40))
		}
		if err := n.Close(); err != nil {
			t.Errorf("end of containerd: %v", err)
		}
	})
	if err := n.prepare("no kubelet here"); err != nil {
		t.Fatalf("prepare a machine: %v", err)
	}
	n.Containerd = &Containerd{Dir: n.dir, Launch: n.Start}
	if err := n.Containerd.Start(t.Context()); err != nil {
		t.Fatalf("start containerd: %v", err)
	}
	return n.Containerd
}
