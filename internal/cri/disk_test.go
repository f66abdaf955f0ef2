package cri

import (
	"testing"

	"github.com/statusd/statusd/internal/wholefile"
	waiting "github.com/statusd/statusd/test/patience"
)

// A disk that takes long over the record of one pod delays no other pod, whose probes and statuses need the runtime.
func TestSlowDisk_DelaysNoOtherPod(t *testing.T) {
	n := newNode(t)
	first, second := testPod("uid-1"), testPod("uid-2")
	id := n.start(first)
	writes, release := make(chan struct{}), make(chan struct{})
	n.options.writeRecord = func(path string, data []byte) error {
		select {
		case writes <- struct{}{}:
		case <-release:
		}
		<-release
		return wholefile.Write(path, data)
	}
	started := make(chan error)
	go func() { started <- n.StartPod(t.Context(), second) }()
	<-writes // before the pod is known: the first record is released, the second one, with the addresses, is not
	release <- struct{}{}
	<-writes
	patient, cancel := waiting.Context(t)
	defer cancel()
	asked := make(chan error)
	go func() {
		_, err := n.Exec(t.Context(), id, []string{"true"})
		asked <- err
		n.list()
		_, err = n.Pods(t.Context())
		asked <- err
	}()
	select {
	case <-asked: // the fake has no commands
	case <-patient.Done():
		t.Fatal("a command of another pod waits for the disk")
	}
	if err := <-asked; err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-started; err != nil {
		t.Error(err)
	}
}
