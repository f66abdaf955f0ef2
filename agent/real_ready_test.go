//go:build real

package agent

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// A node whose state directory is gone, or on a file system that went read-only, says so.
func TestReadOnlyStateIsNotReady(t *testing.T) {
	if err := writable("/state", unix.ST_NOSUID|unix.ST_RDONLY); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v for a read-only file system", err)
	}
	if err := writable("/state", unix.ST_NOSUID); err != nil {
		t.Errorf("got %v for one that can be written", err)
	}
	server := shared.Server(t)
	c := testConfig(t, "bereft")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("bereft"); err != nil {
		t.Fatal(err)
	}
	a, _ := run(t, c)
	awaitReady(t, a, "sleeper-bereft")
	awaitNode(t, server, "bereft", v1.ConditionTrue, "")
	gone := c.StateDir + ".away"
	if err := os.Rename(c.StateDir, gone); err != nil {
		t.Fatal(err)
	}
	a.reportNode(t.Context())
	awaitNode(t, server, "bereft", v1.ConditionFalse, "state directory")
	if err := os.Rename(gone, c.StateDir); err != nil {
		t.Fatal(err)
	}
	a.reportNode(t.Context())
	awaitNode(t, server, "bereft", v1.ConditionTrue, "")
}
