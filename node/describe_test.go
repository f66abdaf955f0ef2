package node

import (
	"testing"
	"testing/synctest"
)

func TestDescribeIsWhatWouldBeRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labels := func(o *Options) { o.Labels = map[string]string{"example.com/rack": "7"} }
		s := newNodeStory(t, labels)
		described, err := Describe(s.node.o)
		if err != nil {
			t.Fatal(err)
		}
		if current := s.node.Current(); current != nil {
			t.Errorf("got %v before the node was registered, want nil", current)
		}
		stop := s.run()
		synctest.Wait()
		stop()
		registered := s.node.Current()
		if registered == nil {
			t.Fatal("registered, and yet there is no current node")
		}
		if registered.Labels["example.com/rack"] != "7" || described.Labels["example.com/rack"] != "7" {
			t.Errorf("labels %v registered, %v described, want the configured one in both", registered.Labels, described.Labels)
		}
		if !described.Status.Allocatable.Cpu().Equal(*registered.Status.Allocatable.Cpu()) || described.Status.Allocatable.Cpu().IsZero() {
			t.Errorf("allocatable %v described, %v registered", described.Status.Allocatable, registered.Status.Allocatable)
		}
	})
}
