package cri

import (
	"errors"
	"testing"
)

// What a container writes outside of volumes counts as the usage of its pod: it fills the disk like any other file.
func TestPodUsage_CountsWhatContainersWrite(t *testing.T) {
	n := newNode(t)
	pod, other := testPod("uid-1"), testPod("uid-2")
	n.start(pod)
	n.start(other)
	before, err := n.PodUsage(t.Context(), pod.UID)
	if err != nil {
		t.Fatal(err)
	}
	n.fake.change(func() { n.fake.written = 1 << 30 })
	after, err := n.PodUsage(t.Context(), pod.UID)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.DiskBytes - before.DiskBytes; got != 1<<30 {
		t.Errorf("the pod uses %d bytes more, want %d", got, 1<<30)
	}
	if got := after.Containers["main"].DiskBytes - before.Containers["main"].DiskBytes; got != 1<<30 {
		t.Errorf("the container uses %d bytes more, want %d", got, 1<<30)
	}
	if without := n.usageWithout(); after.Inodes != without+2 {
		t.Errorf("got %d inodes, want those of the container beside %d", after.Inodes, without)
	}
}

// usageWithout is how many inodes the first pod uses while the container runtime does not count.
func (n *node) usageWithout() uint64 {
	n.t.Helper()
	n.fake.change(func() { n.fake.statsErr = errors.New("down") })
	usage, err := n.PodUsage(n.t.Context(), "uid-1")
	if err != nil {
		n.t.Fatal(err)
	}
	return usage.Inodes
}
