package architecture

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// heavy is what a node made of agent and a runtime must not link: each part comes in by a value that the program names.
var heavy = []string{
	"github.com/google/cel-go", "github.com/godbus/dbus", "github.com/coreos/go-systemd", "google.golang.org/grpc",
	"k8s.io/cri-api", "k8s.io/cri-client", "k8s.io/cri-streaming", "k8s.io/streaming", "k8s.io/kubelet", "github.com/moby/spdystream",
	"github.com/spf13/cobra",
	module + "/internal/alert", module + "/internal/audit", module + "/internal/guard", module + "/internal/history",
	module + "/internal/machine", module + "/internal/queryapi", module + "/internal/view", module + "/internal/web", module + "/internal/podsapi",
	module + "/internal/process/console", module + "/internal/run", module + "/kubeletapi",
}

// mostModules is how many modules the build of examples/node may take, this one included.
const mostModules = 52

// A program that embeds a node pays for a node: neither for alerts and expressions, nor for the guard, the page, gRPC, D-Bus and CRI.
func TestANodeIsLight(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", module+"/examples/node").Output()
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for line := range strings.Lines(string(out)) {
		imported, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		if of != "" && !slices.Contains(modules, of) {
			modules = append(modules, of)
		}
		for _, bad := range heavy {
			if under(imported, bad) {
				t.Errorf("examples/node links %s: a node must do without %s", imported, bad)
			}
		}
	}
	if len(modules) > mostModules || len(modules) < 10 {
		slices.Sort(modules)
		t.Errorf("the build of examples/node takes %d modules, want at most %d:\n%s", len(modules), mostModules, strings.Join(modules, "\n"))
	}
}
