//go:build real

package process

import (
	"fmt"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestAContainerKeepsWhatItAsksFor(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root has capabilities to keep: TestWithoutRootNoOtherUserIsOffered
	}
	h := newHost(t)
	h.open(t)
	pod := confinedPod(report + ` > ` + h.pipe + `; echo > ` + h.pipe)
	pod.Spec.SecurityContext = nil
	container0(pod).SecurityContext = &v1.SecurityContext{Capabilities: &v1.Capabilities{
		Drop: []v1.Capability{"ALL"}, Add: []v1.Capability{"NET_BIND_SERVICE", "CHOWN"},
	}}
	if found := h.Check(pod); len(found) > 0 {
		t.Fatalf("rejected: %v", found)
	}
	h.start(t, pod)
	hasAll(t, "root with two capabilities", h.hear(t), "CapBnd::0000000000000401", "CapEff::0000000000000401", "NoNewPrivs::0", "Seccomp::0")
}

// A user that the machine does not know must not get into root's group.
func TestAnUnknownUserIsNotInRootsGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		return // no other user is offered: TestWithoutRootNoOtherUserIsOffered
	}
	h := newHost(t)
	h.open(t)
	openTheWay(t, h.dir)
	h.start(t, confinedPod(`id -G > `+h.pipe))
	if got, want := h.hear(t), fmt.Sprint("77777 ", h.pods["pod"].group); got != want {
		t.Errorf("groups %s, want its own and the pod's: %s", got, want)
	}
}
