//go:build real

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"text/template"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/freeport"
)

// The configuration of docs/use/observe.md, with paths and ports of this test.
var guardedConfig = template.Must(template.New("observe.yaml").Parse(`apiVersion: statusd/v1alpha1
kind: ObserveConfiguration
nodeName: {{.Node}}
kubeconfig: {{.Kubeconfig}}
stateDir: {{.Dir}}/observe
healthzBindAddress: 127.0.0.1:0
kubeletRoot: {{.State}}
manifests: {{.Manifests}}
criEndpoint: none
kubelet:
  process: {{.Dir}}/node.pid
  podsSocket: {{.State}}/pods.sock
  url: https://{{.Server}}
  insecure: true
  certFile: {{.Dir}}/client.crt
  keyFile: {{.Dir}}/client.key
guard:
  enabled: true
  unit: ""
  runtimeUnit: ""
  restartCommand: [sh, -c, 'echo restart >{{.Dir}}/asked && cat {{.Dir}}/answered']
  healthzURL: http://{{.Healthz}}/healthz
  restart: true
  restartsPerHour: 20
  coolDown: 1s
outputs: {conditions: true, events: true}
`))

// guarded is a statusd run whose guard is a statusd observe beside it.
type guarded struct {
	t      *testing.T
	server *controlplanetest.Server
	node   string
	log    lockedBuffer
	client *queryapi.Client
	dir    string
}

// supervise runs the node as an init system does: it starts the program again whenever the guard's command asks for it by the pipe
// asked, and answers in the pipe answered. It ends with the test.
func (g *guarded) supervise(config string) {
	for _, name := range []string{"asked", "answered"} {
		if err := syscall.Mkfifo(filepath.Join(g.dir, name), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
	asked, err := os.OpenFile(filepath.Join(g.dir, "asked"), os.O_RDWR, 0) // with a writer of its own, reads do not end
	if err != nil {
		g.t.Fatal(err)
	}
	start := func() (end func(syscall.Signal)) {
		node := exec.Command(os.Args[0], "run", "--config", config)
		node.Stderr = &g.log
		if err := node.Start(); err != nil {
			g.t.Error(err)
			return func(syscall.Signal) {}
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = node.Wait() // at once, so that no zombie stays; its log says how it ended
		}()
		if err := os.WriteFile(filepath.Join(g.dir, "node.pid"), []byte(strconv.Itoa(node.Process.Pid)), 0o600); err != nil {
			g.t.Error(err)
		}
		return func(signal syscall.Signal) {
			_ = node.Process.Signal(signal) // the one error is that it has ended
			<-over
		}
	}
	end := start()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(asked); lines.Scan(); {
			end(syscall.SIGKILL)
			end = start()
			if err := os.WriteFile(filepath.Join(g.dir, "answered"), []byte("started\n"), 0o600); err != nil {
				g.t.Error(err)
			}
		}
		end(syscall.SIGTERM)
	}()
	g.t.Cleanup(func() {
		asked.Close()
		<-ended
	})
}

// newGuarded starts a node and the guard beside it.
func newGuarded(t *testing.T, node string) *guarded {
	t.Helper()
	server := shared.Server(t)
	d := newDaemon(t, node).join(server)
	d.config.Server.BindAddress = freeport.Address(t)
	d.config.Guard = run.GuardConfig{} // the guard gives the verdict
	dir := t.TempDir()
	admin := server.Process.AdminConfig()
	file, err := os.Create(filepath.Join(dir, "observe.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	err = guardedConfig.Execute(file, map[string]string{
		"Node": node, "Kubeconfig": d.config.Kubeconfig, "Dir": dir, "State": d.config.StateDir, "Manifests": d.config.Manifests,
		"Server": d.config.Server.BindAddress, "Healthz": d.config.HealthzBindAddress,
	})
	if err := errors.Join(err, file.Close(), os.WriteFile(filepath.Join(dir, "client.crt"), admin.CertData, 0o600), os.WriteFile(filepath.Join(dir, "client.key"), admin.KeyData, 0o600)); err != nil {
		t.Fatal(err)
	}
	g := &guarded{t: t, server: server, node: node, dir: dir, client: queryapi.NewSocketClient(filepath.Join(dir, "observe", "statusd.sock"))}
	g.supervise(d.configFile())
	cmd := exec.Command(os.Args[0], "observe", "--config", file.Name())
	cmd.Stderr = &g.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.client.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("the guard ended with %v; its log:\n%s", err, &g.log)
		}
	})
	return g
}

// await waits for a verdict.
func (g *guarded) await(what string, wanted func(r *guard.Report) bool) (r guard.Report) {
	g.t.Helper()
	untilTrue(g.t, &g.log, what, func() bool {
		var err error
		r, err = g.client.Guard(g.t.Context())
		return err == nil && wanted(&r)
	})
	return r
}

func (g *guarded) awaitCondition(want v1.ConditionStatus, reason string) {
	g.t.Helper()
	untilTrue(g.t, &g.log, "the condition is "+string(want)+" "+reason, func() bool {
		node, err := g.server.Admin().CoreV1().Nodes().Get(g.t.Context(), g.node, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
			return c.Type == notify.ConditionType && c.Status == want && (reason == "" || c.Reason == reason)
		})
	})
}

// events counts the Node's Events with a reason.
func (g *guarded) events(reason guard.NoticeKind) (n int) {
	list, err := g.server.Admin().CoreV1().Events(metav1.NamespaceDefault).List(g.t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + g.node + ",reason=" + string(reason),
	})
	if err != nil {
		return 0
	}
	for i := range list.Items {
		n += int(max(list.Items[i].Count, 1))
	}
	return n
}

func (g *guarded) maintenance(until time.Time) {
	g.t.Helper()
	if _, err := g.client.Maintenance(g.t.Context(), until); err != nil {
		g.t.Fatal(err)
	}
}

// statusd observe guards a statusd run as it guards a kubelet: killed or frozen, it says so as verdict, condition and Event,
// and restarts it once its policy lets it.
func TestRealServer_TheGuardBesideANodeOfItsOwn(t *testing.T) {
	g := newGuarded(t, "guarded")
	healthy := func(r *guard.Report) bool { return r.Health == guard.Healthy && r.PID != 0 }
	g.await("the node is healthy", healthy)
	for _, name := range []string{"process", "healthz", "healthz/syncloop", "lease", "apiserver", "disk"} {
		g.await(name+" is known and well", func(r *guard.Report) bool {
			return slices.ContainsFunc(r.Evidence, func(i guard.Item) bool { return i.Name == name && i.OK })
		})
	}
	g.awaitCondition(v1.ConditionTrue, "")
	for _, scene := range []struct {
		name   string
		signal syscall.Signal
		reason string
	}{{"killed", syscall.SIGKILL, guard.ProcessGone}, {"frozen", syscall.SIGSTOP, guard.ProcessStopped}} {
		g.maintenance(time.Now().Add(time.Hour)) // so that the verdict is not over before it was seen
		r := g.await("the node is healthy", func(r *guard.Report) bool { return healthy(r) && r.Under == "" })
		before, restarts, events := r.PID, len(r.Restarts), g.events(guard.NoticeUnhealthy) // there may be more of a slow start
		if err := syscall.Kill(before, scene.signal); err != nil {
			t.Fatal(err)
		}
		g.await(scene.name+": a verdict", func(r *guard.Report) bool {
			return r.Health == guard.Unhealthy && r.Reasons[0].Code == scene.reason && r.Withheld != "" && len(r.Restarts) == restarts
		})
		g.awaitCondition(v1.ConditionFalse, scene.reason)
		untilTrue(t, &g.log, scene.name+": an Event", func() bool { return g.events(guard.NoticeUnhealthy) > events })
		g.maintenance(time.Time{})
		r = g.await(scene.name+": restarted and healthy", func(r *guard.Report) bool { return healthy(r) && r.PID != before && len(r.Restarts) > restarts })
		if last := r.Restarts[restarts]; last.Err != "" || last.Reason != scene.reason {
			t.Errorf("%s: the restart is %+v", scene.name, last)
		}
		g.awaitCondition(v1.ConditionTrue, "")
	}
}
