//go:build real

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	testpatience "github.com/statusd/statusd/test/patience"
)

// tutorial runs the commands of a section of docs/use/first-hour.md in an empty directory and returns what they have printed.
func tutorial(t *testing.T, section string, environment ...string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/use/first-hour.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## "+section+"\n")
	if !found {
		t.Fatalf("the page has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var script strings.Builder
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			script.WriteString(command)
		}
	}
	bin, self := t.TempDir(), os.Args[0]
	if !filepath.IsAbs(self) {
		t.Fatalf("the test binary is %s, want an absolute path", self)
	}
	if err := os.Symlink(self, filepath.Join(bin, "statusd")); err != nil {
		t.Fatal(err)
	}
	kubectl, err := filepath.Abs("../../bin/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kubectl, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := testpatience.Context(t)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-c", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), append(environment, "PATH="+bin+":"+os.Getenv("PATH"))...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		for _, name := range []string{"statusd.log", "observe.log"} {
			log, _ := os.ReadFile(filepath.Join(cmd.Dir, name))
			t.Logf("%s:\n%s", name, log)
		}
		t.Fatalf("%v after\n%s", err, out)
	}
	return string(out)
}

func wantAll(t *testing.T, got string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q in\n%s", want, got)
		}
	}
}

func TestFirstHour_Node(t *testing.T) {
	wantAll(t, tutorial(t, "A node: statusd run"), "defines 1 static pods", "web-hour is not Ready", "its readiness probe", "web-hour is Ready", "PodReadyToStartContainers", "ended 1 containers")
}

// make kubectl builds the kubectl that this test needs.
func TestFirstHour_Library(t *testing.T) {
	server := shared.Server(t)
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	got := tutorial(t, "The library", "KUBECONFIG="+server.Process.AdminKubeconfig(), "NAMESPACE="+server.Namespace(t), "CHECKOUT="+checkout, "GOPROXY=off")
	wantAll(t, got, "pod/job created", "condition met", "Completed", `pod "job" deleted`, `node "batch-node" deleted`)
}

func TestFirstHour_Observe(t *testing.T) {
	server := shared.Server(t)
	const node = "first-hour"
	server.Node(t, node)
	namespace := server.Namespace(t)
	server.CreatePod(t, controlplanetest.Pod(namespace, "web", node))
	got := tutorial(t, "Beside a kubelet: statusd observe", "KUBECONFIG="+server.Process.AdminKubeconfig(), "NODE="+node, "NAMESPACE="+namespace)
	wantAll(t, got, "Pod "+namespace+"/web", "API server", "agrees with the API server's", "all 5 rights that the config needs", "The kubelet does not answer")
}
