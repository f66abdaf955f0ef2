//go:build real

package outside

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

// longest is how many lines of code an example may have: it must show how little is needed.
const longest = 60

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }

// A program of another module is a whole node with a runtime of its own.
func TestNodeOutsideThisModule(t *testing.T) {
	n := start(t, "node")
	ctx, pods := n.ctx, n.server.Admin().CoreV1().Pods(n.namespace)
	events, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	web := controlplanetest.Pod(n.namespace, "web", n.node)
	web.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 18080}}
	web.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(18080)}}}
	n.server.CreatePod(t, web)
	job := controlplanetest.Pod(n.namespace, "job", n.node)
	job.Spec.RestartPolicy, job.Spec.Containers[0].Args = v1.RestartPolicyNever, []string{"working"}
	n.server.CreatePod(t, job)
	n.await(events, "web is ready and job has succeeded", func(seen map[string]*v1.Pod) bool {
		ready := podstatus.FindCondition(seen["web"].Status.Conditions, v1.PodReady)
		return ready != nil && ready.Status == v1.ConditionTrue && seen["job"].Status.Phase == v1.PodSucceeded
	}, "web", "job")
	n.deleteAndAwait(events, "web")
}

// A program of another module reports the jobs of a batch system, deleted ones included.
func TestBatchOutsideThisModule(t *testing.T) {
	n := start(t, "batch")
	ctx, pods := n.ctx, n.server.Admin().CoreV1().Pods(n.namespace)
	events, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	job := controlplanetest.Pod(n.namespace, "job", n.node)
	job.Spec.RestartPolicy = v1.RestartPolicyNever
	n.server.CreatePod(t, job)
	n.await(events, "job has succeeded", func(seen map[string]*v1.Pod) bool { return seen["job"].Status.Phase == v1.PodSucceeded }, "job")
	n.deleteAndAwait(events, "job")
	for i := range 20 { // whatever its state, a pod that is deleted goes
		name := fmt.Sprint("deleted-", i)
		n.server.CreatePod(t, controlplanetest.Pod(n.namespace, name, n.node))
		n.deleteAndAwait(events, name)
	}
}

// program is an example that runs.
type program struct {
	*testing.T
	ctx             context.Context
	server          *controlplanetest.Server
	node, namespace string
}

// start builds an example in a directory of its own and starts it until the test ends.
func start(t *testing.T, name string) *program {
	source, err := os.ReadFile(filepath.Join(root, "examples", name, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := codeLines(source); lines > longest {
		t.Errorf("examples/%s has %d lines of code, want at most %d", name, lines, longest)
	}
	if name == "node" {
		source = withoutEvictions(t, source)
	}
	dir := scratch(t, name, source)
	ctx, cancel := patience.Context(t)
	t.Cleanup(cancel)
	p := &program{T: t, ctx: ctx, server: shared.Server(t), node: "outside-" + name}
	p.namespace = p.server.Namespace(t)
	if name == "batch" {
		p.server.Node(t, p.node) // the program reports pods, not their node
	}
	kubeconfig, err := p.server.Process.NodeKubeconfig(p.node)
	if err != nil {
		t.Fatal(err)
	}

	launch(t, dir, kubeconfig, p.node)
	return p
}

// launch starts a program that scratch has built. When the test ends it is interrupted, and must then end without an error.
func launch(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.Command(filepath.Join(dir, "program"), args...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt) // it may have ended already
		if err := command.Wait(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		if t.Failed() {
			t.Logf("%v:\n%s", args, output.String())
		}
	})
}

// withoutEvictions changes the program so that it runs pods whatever the disk of this machine has left.
func withoutEvictions(t *testing.T, source []byte) []byte {
	t.Helper()
	configured := []byte("\tconfig.Kubeconfig = os.Args[1]\n")
	if bytes.Count(source, configured) != 1 {
		t.Fatalf("the program does not configure itself by one line %q", configured)
	}
	return bytes.Replace(source, configured, fmt.Appendf(configured, "\tconfig.Eviction.Hard = %#v\n", eviction.Disabled()), 1)
}

// scratch builds the program as a module of its own that knows this one by a replace directive.
func scratch(t *testing.T, name string, source []byte) string {
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"main.go": string(source),
		"go.sum":  string(sums),
		"go.mod": fmt.Sprintf("module example.com/%s\n\ngo 1.26\n\nrequire github.com/statusd/statusd v0.0.0\n\nreplace github.com/statusd/statusd => %s\n",
			name, here),
	}
	others, err := filepath.Glob(filepath.Join(root, "examples", name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range others {
		if base := filepath.Base(file); base != "main.go" && !strings.HasSuffix(base, "_test.go") {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			files[base] = string(content)
		}
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", "program", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off") // what this module needs is all that they need
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build of %s outside this module: %v\n%s", name, err, out)
	}
	return dir
}

var notCode = regexp.MustCompile(`^\s*(//.*)?$`)

// codeLines counts the lines that are neither empty nor comments.
func codeLines(source []byte) (n int) {
	for line := range strings.Lines(string(source)) {
		if !notCode.MatchString(strings.TrimSuffix(line, "\n")) {
			n++
		}
	}
	return n
}

// await follows the watch until the pods of these names are there and as wanted.
func (p *program) await(events watch.Interface, want string, is func(map[string]*v1.Pod) bool, names ...string) {
	p.Helper()
	seen := map[string]*v1.Pod{}
	for {
		select {
		case <-p.ctx.Done():
			p.Fatalf("not so in time: %s", want)
		case e, ok := <-events.ResultChan():
			pod, isPod := e.Object.(*v1.Pod)
			if !ok || !isPod {
				p.Fatalf("the watch ended before it was so: %s", want)
			}
			seen[pod.Name] = pod
			complete := true
			for _, name := range names {
				complete = complete && seen[name] != nil
			}
			if complete && is(seen) {
				return
			}
		}
	}
}

// deleteAndAwait deletes a pod with the default grace, and waits for its end.
func (p *program) deleteAndAwait(events watch.Interface, name string) {
	p.Helper()
	grace := int64(3600) // only the node can end it before the test is over
	if err := p.server.Admin().CoreV1().Pods(p.namespace).Delete(p.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		p.Fatal(err)
	}
	for {
		select {
		case <-p.ctx.Done():
			p.Fatalf("%s was not deleted", name)
		case e, ok := <-events.ResultChan():
			if !ok {
				p.Fatalf("the watch ended before %s was deleted", name)
			}
			if pod, isPod := e.Object.(*v1.Pod); isPod && e.Type == watch.Deleted && pod.Name == name {
				return
			}
		}
	}
}
