//go:build real

package guardsetup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
	"github.com/statusd/statusd/internal/guard/service"
	"github.com/statusd/statusd/internal/hostproc"
	"github.com/statusd/statusd/internal/nodeclient"
	"github.com/statusd/statusd/test/background"
	"github.com/statusd/statusd/test/stock"
)

// stockKubelet is the kubelet of a stock node as a service: it is looked at in /proc, and started as the node does.
type stockKubelet struct {
	node *stock.Node
	file string
	mu   sync.Mutex // a node is for one goroutine
	// may is received from before each restart, so that the test has seen the Events before it.
	may chan struct{}
}

// process is the one that runs, or has run.
func (s *stockKubelet) process() *stock.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.Kubelet.Process()
}

// change changes how the kubelet is started the next time.
func (s *stockKubelet) change(change func(*stock.Kubelet)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.node.Kubelet)
}

// Name is that of a service.
func (s *stockKubelet) Name() string { return "kubelet" }

// State is that of a service.
func (s *stockKubelet) State(ctx context.Context) (guard.Process, error) {
	process := s.process()
	if process.Over() {
		return endedProcess(process), nil
	}
	if err := os.WriteFile(s.file, fmt.Append(nil, process.PID()), 0o600); err != nil {
		return guard.Process{}, err
	}
	return service.Found{Finder: hostproc.Finder{PIDFile: s.file}}.State(ctx)
}

// endedProcess is what a parent knows of a process that has ended.
func endedProcess(process *stock.Process) guard.Process {
	status, at := process.Ended()
	p := guard.Process{Sure: true, Started: process.Began(), Ended: at}
	if status.Signaled() {
		p.Signal = status.Signal().String()
	} else {
		code := status.ExitStatus()
		p.ExitCode = &code
	}
	return p
}

// Start is that of a service.
func (s *stockKubelet) Start(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.Kubelet.Start()
}

// Stop is that of a service.
func (s *stockKubelet) Stop(context.Context) error {
	s.process().Kill()
	return nil
}

// Restart is that of a service.
func (s *stockKubelet) Restart(ctx context.Context) error {
	select {
	case <-s.may:
	case <-ctx.Done():
		return ctx.Err()
	}
	return errors.Join(s.Stop(ctx), s.Start(ctx))
}

// scene is a node with a guard.
type scene struct {
	t       *testing.T
	ctx     context.Context // ends shortly before the time of the test run is over
	node    *stock.Node
	kubelet *stockKubelet
	guard   *Guard
}

// newScene starts a guard that may restart the kubelet of a node, and the runtime if that is given. It ends with the test.
func newScene(t *testing.T, node *stock.Node, runtime guard.Service) *scene {
	t.Helper()
	c := Default()
	c.Enabled, c.Restart, c.RestartRuntime = true, true, runtime != nil
	c.HealthzURL = fmt.Sprintf("http://127.0.0.1:%d/healthz", node.Kubelet.HealthzPort)
	c.CoolDown, c.RestartsPerHour = time.Second, 100
	c.LogFile = filepath.Join(node.Dir(), "kubelet.log")
	slots := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Semaphore}}
	if _, err := node.Admin().CoreV1().Namespaces().Create(t.Context(), slots, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubelet := &stockKubelet{node: node, file: filepath.Join(t.TempDir(), "kubelet.pid"), may: make(chan struct{})}
	g, err := New(c, Options{
		Node: node.Name, StateDir: t.TempDir(), Every: time.Second, Kubelet: kubelet, RuntimeService: runtime, Client: node.Admin(), Outputs: reported(t, node.Admin(), node.Name),
		Server: "https://" + node.Kubelet.Address(), Credentials: nodeclient.Credentials{CertFile: adminCertificate(t, node), Insecure: true},
		Runtime: "unix://" + node.Containerd.Socket(), KubeletRoot: filepath.Join(node.Root(), node.Kubelet.Root()),
	})
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, g.Run)
	return &scene{t, stock.Context(t), node, kubelet, g}
}

// adminCertificate is a file with the certificate and the key of a client that may do everything.
func adminCertificate(t *testing.T, node *stock.Node) string {
	t.Helper()
	admin := node.API.AdminConfig()
	path := filepath.Join(t.TempDir(), "admin.pem")
	data := append(append([]byte{}, admin.CertData...), admin.KeyData...)
	if len(data) == 0 {
		for _, file := range []string{admin.CertFile, admin.KeyFile} {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, content...)
		}
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// await waits until the report is as wanted; the bound is the test's own.
func (s *scene) await(what string, wanted func(guard.Report) bool) guard.Report {
	s.t.Helper()
	var last guard.Report
	err := stock.Await(s.ctx, func() error {
		if last = s.guard.Report(); !wanted(last) {
			return fmt.Errorf("waits for: %s; it is %s: %+v, withheld %q", what, last.Health, last.Reasons, last.Withheld)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return last
}

// awaitUnknown waits until all evidence is known except what is named, in the order of the report.
func (s *scene) awaitUnknown(names ...string) {
	s.t.Helper()
	err := stock.Await(s.ctx, func() error {
		var unknown []string
		for _, item := range s.guard.Report().Evidence {
			if item.Unknown {
				unknown = append(unknown, item.Name)
			}
		}
		if !slices.Equal(unknown, names) {
			return fmt.Errorf("not known are %q, want %q", unknown, names)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// awaitCondition waits until the API has the condition in a status.
func (s *scene) awaitCondition(status v1.ConditionStatus) {
	s.t.Helper()
	err := stock.Await(s.ctx, func() error {
		node, err := s.node.Admin().CoreV1().Nodes().Get(s.ctx, s.node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == notify.ConditionType && c.Status == status {
				return nil
			}
		}
		return fmt.Errorf("the node has no condition %s=%s: %+v", notify.ConditionType, status, node.Status.Conditions)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// awaitEvent waits until the API has an Event of a reason that came after a time.
func (s *scene) awaitEvent(reason guard.NoticeKind, after time.Time) {
	s.t.Helper()
	err := stock.Await(s.ctx, func() error {
		events, err := s.node.Admin().CoreV1().Events("default").List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == string(reason) && !e.LastTimestamp.Time.Before(after.Truncate(time.Second)) {
				return nil
			}
		}
		return fmt.Errorf("no event %s since %s", reason, after)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func healthy(r guard.Report) bool { return r.Health == guard.Healthy }

// hurt breaks the kubelet, and waits for the condition, the Events, the restart and a healthy kubelet.
func (s *scene) hurt(reason string, hurt func()) {
	s.t.Helper()
	before := len(s.await("a healthy kubelet", healthy).Restarts)
	begin := time.Now()
	hurt()
	s.awaitCondition(v1.ConditionFalse)
	noticed := time.Since(begin)
	s.awaitEvent(guard.NoticeUnhealthy, begin)
	s.kubelet.may <- struct{}{}
	s.awaitEvent(guard.NoticeRestarted, begin)
	restarted := time.Since(begin)
	r := s.await("a restart, and a healthy kubelet", func(r guard.Report) bool { return len(r.Restarts) > before && healthy(r) })
	s.awaitCondition(v1.ConditionTrue)
	restart := r.Restarts[before]
	if restart.Reason != reason || restart.Err != "" || restart.By != "guard" {
		s.t.Errorf("restarted for %+v, want %s", restart, reason)
	}
	log, err := os.ReadFile(filepath.Join(restart.Evidence, "kubelet.log"))
	if err != nil || len(log) == 0 {
		s.t.Errorf("no log lines are kept in %s: %v", restart.Evidence, err)
	}
	s.t.Logf("%s: condition after %.1f s, events after %.1f s, healthy after %.1f s", reason, noticed.Seconds(), restarted.Seconds(), time.Since(begin).Seconds())
}

// Scenarios with a stock kubelet and containerd: what happens, what the verdict says, whether it is restarted.
func TestRealKubelet(t *testing.T) {
	t.Parallel()
	node := stock.Start(t, stock.Options{Name: "guarded"})
	s := newScene(t, node, nil)
	r := s.await("a healthy kubelet", healthy)
	if r.PID != s.kubelet.process().PID() {
		t.Errorf("guards process %d, want %d", r.PID, s.kubelet.process().PID())
	}
	s.awaitCondition(v1.ConditionTrue)
	// The kubelet of this node has a certificate in its kubeconfig, there is neither an audit nor a logind, and a write is
	// tried only once the lease is late.
	s.awaitUnknown("lists", "audit", "writes", "certificate", "shutdown")

	s.hurt(guard.ProcessGone, func() { s.kubelet.process().Kill() })
	s.hurt(guard.ProcessStopped, func() {
		if err := s.kubelet.process().Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
	})

	close(s.kubelet.may)
	s.runtimeKilled()
	s.apiServerDown()
	s.awaitEvent(guard.NoticeSuppressed, time.Time{})
}
