//go:build real

package agent

import (
	"slices"
	"testing"
)

// Only the delivery of statuses has a claim on the time of a stop: a Node whose requests take long
// must not use it up, and its last report says nothing new.
func TestASlowNodeDoesNotTakeTheTimeOfStatuses(t *testing.T) {
	server := shared.Server(t)
	c := testConfig(t, "brief")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("brief"); err != nil {
		t.Fatal(err)
	}
	a, _ := run(t, c)
	awaitReady(t, a, "sleeper-brief")
	var said []string
	for _, p := range a.parts() {
		if p.BeforeStop != nil {
			said = append(said, p.Name)
		}
	}
	if !slices.Equal(said, []string{"status manager"}) {
		t.Errorf("%q have something to do before they stop, want the status manager alone", said)
	}
}
