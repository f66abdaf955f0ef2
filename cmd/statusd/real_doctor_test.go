//go:build real

package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/statusd/statusd/internal/doctor"
)

// The credentials of a node have all rights that statusd run and statusd observe need, and a node with these rights but another name has not.
func TestDoctor_RealServer(t *testing.T) {
	server := shared.Server(t)
	kubeconfig, err := server.Process.NodeKubeconfig("doctor-node")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		product, node string
		rights        doctor.Result
	}{
		{"--observe=false", "doctor-node", doctor.OK},
		{"--observe", "doctor-node", doctor.OK},
		{"--observe=false", "another-node", doctor.Failed},
	} {
		var out bytes.Buffer
		// The exit code depends on the machine, too: on its ports and its container runtime.
		_ = command([]string{"doctor", c.product, "--kubeconfig", kubeconfig, "--node-name", c.node, "--state-dir", t.TempDir(), "-o", "json"}, &out)
		var findings []doctor.Finding
		if err := json.Unmarshal(out.Bytes(), &findings); err != nil {
			t.Fatalf("%v in %s", err, out.String())
		}
		got := map[string]doctor.Finding{}
		for _, f := range findings {
			got[f.Check] = f
		}
		for check, want := range map[string]doctor.Result{"API server": doctor.OK, "clock": doctor.OK, "rights": c.rights} {
			if got[check].Result != want {
				t.Errorf("%s as %s: got %+v, want %s to be %s", c.product, c.node, got[check], check, want)
			}
		}
	}
}
