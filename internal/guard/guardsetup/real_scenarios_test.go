//go:build real

package guardsetup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/test/stock"
)

// withheld waits for a verdict with all of these reasons for which nothing is restarted, and for what it says would
// help.
func (s *scene) withheld(health guard.Health, do string, reasons ...string) guard.Report {
	s.t.Helper()
	begin := time.Now()
	r := s.await(fmt.Sprintf("%s by %v, and what would help: %s", health, reasons, do), func(r guard.Report) bool {
		for _, code := range reasons {
			if !has(r, code) {
				return false
			}
		}
		return r.Health == health && strings.HasPrefix(r.Do, do) && r.Withheld == "a restart would not help"
	})
	s.t.Logf("%s by %v after %.1f s; would help: %s", r.Health, reasons, time.Since(begin).Seconds(), r.Do)
	return r
}

// has reports whether the report has a reason.
func has(r guard.Report, code string) bool {
	return slices.ContainsFunc(r.Reasons, func(reason guard.Reason) bool { return reason.Code == code })
}

// restarted waits until the guard has restarted the kubelet once more than so often, and it runs.
func (s *scene) restarted(before int, reason string) {
	s.t.Helper()
	r := s.await("a restart for "+reason, func(r guard.Report) bool { return len(r.Restarts) > before && r.Under == "" && r.PID != 0 })
	if got := r.Restarts[before]; got.Reason != reason || got.Err != "" {
		s.t.Errorf("restarted for %+v, want %s", got, reason)
	}
}

// count is how often the guard has restarted the kubelet, which is healthy and has a process: a verdict without one may be about
// the kubelet before, and the start of this one would be counted later.
func (s *scene) count() int {
	s.t.Helper()
	return len(s.await("a healthy kubelet", func(r guard.Report) bool { return healthy(r) && r.PID != 0 && r.Under == "" }).Restarts)
}

// A stock kubelet that a restart does not mend: it does not start, or its disk is full.
func TestRealCrashLoops(t *testing.T) {
	t.Parallel()
	s := newScene(t, stock.Start(t, stock.Options{Name: "looping"}), nil)
	close(s.kubelet.may)
	s.crashLoop("a configuration that the kubelet does not take", ", exit code 1", func(k *stock.Kubelet) { k.Settings += "maxPods: -1\n" })
	// As of node-problem-detector #861: an end with exit code 0 is as bad as any other.
	s.crashLoop("a command that ends at once", ", exit code 0", func(k *stock.Kubelet) { k.Binary = theTrue(t) })
	s.diskFull()
}

func theTrue(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// apiServerDown: nothing is restarted while the API server is down, but a kubelet that has ended is started.
func (s *scene) apiServerDown() {
	s.t.Helper()
	before := s.count()
	if err := s.node.API.Kill(); err != nil {
		s.t.Fatal(err)
	}
	if r := s.withheld(guard.Degraded, "bring back the API server", guard.APIServerUnreachable); len(r.Restarts) != before {
		s.t.Errorf("%d restarts while the API server is down", len(r.Restarts)-before)
	}
	s.kubelet.process().Kill()
	s.restarted(before, guard.ProcessGone)
	if err := s.node.API.Restart(s.ctx); err != nil {
		s.t.Fatal(err)
	}
	if got := s.count() - before; got != 1 {
		s.t.Errorf("%d restarts of a kubelet that was killed once while the API server was down", got)
	}
}

// runtimeKilled: without a runtime a kubelet does not start, so a dead one is started once the runtime is back.
func (s *scene) runtimeKilled() {
	s.t.Helper()
	before := s.count()
	s.node.Containerd.Process().Kill()
	s.withheld(guard.Degraded, "restart the container runtime", guard.RuntimeDown)
	s.kubelet.process().Kill()
	if r := s.withheld(guard.Unhealthy, "restart the container runtime", guard.RuntimeDown, guard.ProcessGone); len(r.Restarts) != before {
		s.t.Errorf("%d restarts while the runtime is down", len(r.Restarts)-before)
	}
	if err := s.node.Containerd.Start(s.ctx); err != nil {
		s.t.Fatal(err)
	}
	s.restarted(before, guard.ProcessGone)
	if got := s.count() - before; got != 1 {
		s.t.Errorf("%d restarts of a kubelet that was killed once while the runtime was down", got)
	}
}

// crashLoop: a kubelet that ends each time it is started is not started again and again. Once an operator has mended and
// started it, it is healthy.
func (s *scene) crashLoop(what, ending string, breaks func(*stock.Kubelet)) {
	s.t.Helper()
	s.t.Log(what)
	before := s.count()
	var well stock.Kubelet
	s.kubelet.change(func(k *stock.Kubelet) {
		well = *k
		breaks(k)
	})
	s.kubelet.process().Kill()
	r := s.withheld(guard.Unhealthy, "read the kubelet's last log lines", guard.CrashLooping)
	if i := slices.IndexFunc(r.Reasons, func(r guard.Reason) bool { return r.Code == guard.CrashLooping }); !strings.HasSuffix(r.Reasons[i].Message, ending) {
		s.t.Errorf("the reason is %q, want it to end with %q", r.Reasons[i].Message, ending)
	}
	tried := len(r.Restarts)
	if tried == before {
		s.t.Error("it was not restarted at all")
	}
	s.kubelet.change(func(k *stock.Kubelet) { k.Settings, k.Binary = well.Settings, well.Binary })
	if err := s.kubelet.Start(s.ctx); err != nil {
		s.t.Fatal(err)
	}
	if got := s.count(); got != tried {
		s.t.Errorf("%d restarts in a crash loop", got-tried)
	}
}

// diskFull: on a full disk a kubelet works on, one that was never started there does not start, and once there is space it
// is started.
func (s *scene) diskFull() {
	s.t.Helper()
	before := s.count()
	root := s.ownDisk()
	fill(s.t, filepath.Join(root, "filler"))
	if r := s.withheld(guard.Degraded, "free space on the disk of the kubelet's root", guard.DiskFull); len(r.Restarts) != before {
		s.t.Errorf("%d restarts of a kubelet that runs on a full disk", len(r.Restarts)-before)
	}
	s.kubelet.process().Kill()
	s.withheld(guard.Unhealthy, "free space on the disk of the kubelet's root", guard.DiskFull, guard.CrashLooping)
	// The kubelet has left an empty certificate there, with which it would not start either.
	if err := errors.Join(os.RemoveAll(filepath.Join(root, "pki")), os.Remove(filepath.Join(root, "filler"))); err != nil {
		s.t.Fatal(err)
	}
	s.await("a healthy kubelet", func(r guard.Report) bool { return healthy(r) && r.PID != 0 })
}

// ownDisk mounts a small file system over the kubelet's root, for the processes of this node alone, and returns its path
// from outside.
func (s *scene) ownDisk() (root string) {
	s.t.Helper()
	mount, err := s.node.Start("mount", "mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", s.node.Kubelet.Root())
	if err != nil {
		s.t.Fatal(err)
	}
	if status, _ := mount.Ended(); status.ExitStatus() != 0 {
		s.t.Fatal("the small file system was not mounted")
	}
	return filepath.Join(s.node.Root(), s.node.Kubelet.Root())
}

// fill writes until the file system is full.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// A kubelet whose client certificate ends renews no lease. It is healthy once it has another one: it reads the file again
// itself, or is restarted, whichever comes first.
func TestRealCertificate(t *testing.T) {
	t.Parallel()
	node := stock.Start(t, stock.Options{Name: "certificate", Settings: "nodeLeaseDurationSeconds: 20\n"})
	s := newScene(t, node, nil)
	close(s.kubelet.may)
	before := s.count()
	s.certificate(time.Now().Add(45 * time.Second)) // the kubelet is left alone for a minute after its start
	s.kubelet.process().Kill()
	s.restarted(before, guard.ProcessGone)
	r := s.withheld(guard.Unhealthy, "renew its client certificate", guard.CertificateExpired, guard.LeaseStale)
	if len(r.Restarts) != before+1 {
		t.Errorf("restarted for %+v", r.Restarts[before+1:])
	}
	s.certificate(time.Now().Add(time.Hour))
	r = s.await("a healthy kubelet", healthy)
	for _, restart := range r.Restarts[before+1:] {
		if restart.Reason != guard.LeaseStale || restart.Err != "" {
			t.Errorf("restarted for %+v, want %s", restart, guard.LeaseStale)
		}
	}
}

// certificate gives the kubelet a client certificate that ends at a time, in the file where kubelets keep it.
func (s *scene) certificate(end time.Time) {
	s.t.Helper()
	inline, err := s.node.KubeconfigUntil("inline", end)
	if err != nil {
		s.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(inline)
	if err != nil {
		s.t.Fatal(err)
	}
	user := config.AuthInfos["u"]
	file := filepath.Join(s.node.Kubelet.Root(), "pki", "kubelet-client-current.pem")
	if err := os.WriteFile(file, append(user.ClientCertificateData, user.ClientKeyData...), 0o600); err != nil {
		s.t.Fatal(err)
	}
	kubeconfig, err := s.node.Kubeconfig("file", s.node.API.Address(), &clientcmdapi.AuthInfo{ClientCertificate: file, ClientKey: file})
	if err != nil {
		s.t.Fatal(err)
	}
	s.kubelet.change(func(k *stock.Kubelet) { k.Kubeconfig = kubeconfig })
}
