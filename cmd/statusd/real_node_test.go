//go:build real

package main

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// getNode reads the Node once it is registered.
func getNode(t *testing.T, server *controlplanetest.Server, name string) *v1.Node {
	t.Helper()
	var node *v1.Node
	until(t, "node "+name+" is registered", func() bool {
		var err error
		node, err = server.Admin().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		return err == nil
	})
	return node
}

// By default the scheduler sends no pod here that does not tolerate the taint: a pod that is
// not made for the process runtime would be rejected, created again, and rejected again.
func TestNodeIsTaintedByDefault(t *testing.T) {
	server := shared.Server(t)
	for _, c := range []struct {
		node   string
		taints []string
		want   int
	}{{"tainted", nil, 1}, {"untainted", []string{}, 0}} {
		d := newDaemon(t, c.node).join(server)
		if c.taints != nil {
			d.config.Node.Taints = c.taints
		}
		d.start()
		taints := getNode(t, server, c.node).Spec.Taints
		own := 0
		for _, taint := range taints {
			if taint.MatchTaint(&v1.Taint{Key: "statusd/process", Effect: v1.TaintEffectNoSchedule}) {
				own++
			}
		}
		if own != c.want {
			t.Errorf("node %s has taints %v, want %d of the process runtime", c.node, taints, c.want)
		}
		d.stop()
	}
}
