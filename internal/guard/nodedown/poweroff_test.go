//go:build systemd

package nodedown

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard/service"
	"github.com/statusd/statusd/internal/node/shutdown/logind"
)

// diary has what happened, by line. It is on disk, since the process ends with its machine.
type diary struct {
	t    *testing.T
	path string
	mu   sync.Mutex // one line at a time
}

func (d *diary) note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file, err := os.OpenFile(d.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		d.t.Error(err)
		return
	}
	defer file.Close()
	if _, err := file.WriteString(text + "\n"); err != nil {
		d.t.Error(err)
	}
}

func (d *diary) String() string {
	data, _ := os.ReadFile(d.path) // none yet
	return strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", ", ")
}

func (d *diary) await(want string) {
	for d.String() != want {
		if d.t.Context().Err() != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func system(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

func unit(t *testing.T, name, text string) *service.Systemd {
	t.Helper()
	if err := os.WriteFile("/run/systemd/system/"+name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	system(t, "systemctl", "daemon-reload")
	system(t, "systemctl", "start", name)
	s := service.NewSystemd(name, service.SystemdOptions{})
	t.Cleanup(s.Close)
	return s
}

// watch runs a watch of the real logind that stops and starts a unit, until the test ends.
func (d *diary) watch(kubelet *service.Systemd) *Watch {
	begin := sync.OnceValue(time.Now)
	w := New(Options{
		Host: &logind.Host{},
		Say: func(context.Context) error {
			begin()
			d.note("node not ready")
			return nil
		},
		Stop: func(ctx context.Context) error {
			err := kubelet.Stop(ctx)
			within := "within the delay"
			if time.Since(begin()) >= 5*time.Second {
				within = "too late"
			}
			d.note("stop returned " + within)
			return err
		},
		Start: func(ctx context.Context) error {
			d.note("start")
			return kubelet.Start(ctx)
		},
	})
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	d.t.Cleanup(func() { cancel(); <-ended })
	for !strings.Contains(system(d.t, "systemd-inhibit", "--list", "--no-pager"), "statusd") {
		time.Sleep(20 * time.Millisecond)
	}
	return w
}

// powerOff asks logind, as the power key and systemctl do.
func powerOff(t *testing.T) {
	system(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PowerOff", "b", "false")
}

// A shutdown that was scheduled and called off is never announced. One that has begun and whose job is canceled is announced
// as over: the kubelet runs again, and the next shutdown is delayed.
func TestRealLogind_ACanceledShutdownIsUndone(t *testing.T) {
	d := &diary{t: t, path: t.TempDir() + "/diary"}
	unit(t, "slow.service", "[Unit]\nAfter=dbus.service systemd-logind.service\n[Service]\nExecStart=/bin/sleep infinity\nExecStop=/bin/sleep infinity\nTimeoutStopSec=infinity\n")
	w := d.watch(unit(t, "kubelet5.service", fmt.Sprintf("[Service]\nExecStart=/bin/sleep infinity\nExecStopPost=/bin/sh -c 'echo kubelet stopped >>%s'\n", d.path)))
	system(t, "shutdown", "--no-wall", "+1")
	system(t, "shutdown", "--no-wall", "-c")
	powerOff(t)
	const stopped = "node not ready, kubelet stopped, stop returned within the delay, node not ready"
	d.await(stopped)
	for !strings.Contains(system(t, "systemctl", "list-jobs", "--no-pager"), "poweroff.target") || state(t, "slow.service") != "deactivating" {
		time.Sleep(20 * time.Millisecond)
	}
	if !w.Under() {
		t.Error("the machine does not shut down")
	}
	system(t, "systemctl", "cancel")
	d.await(stopped + ", start")
	for w.Under() || !strings.Contains(system(t, "systemd-inhibit", "--list", "--no-pager"), "statusd") {
		time.Sleep(20 * time.Millisecond)
	}
	if state := state(t, "kubelet5.service"); state != "active" {
		t.Errorf("the kubelet is %s", state)
	}
	t.Log(d)
	system(t, "systemctl", "kill", "--signal=SIGKILL", "slow.service") // its ExecStop would hold the next shutdown
	for state(t, "slow.service") == "deactivating" {
		time.Sleep(20 * time.Millisecond)
	}
}

// state is what systemctl calls active, deactivating and so on.
func state(t *testing.T, unit string) string {
	t.Helper()
	return strings.TrimSpace(system(t, "systemctl", "show", "--property=ActiveState", "--value", unit))
}

// The machine goes down: its script reads the diary when it is off. The unit notes which jobs there are when it stops: none,
// since the shutdown waits for it.
func TestPowerOff(t *testing.T) {
	d := &diary{t: t, path: "/diary"}
	unit(t, "other.service", "[Service]\nExecStart=/bin/sleep infinity\nExecStop=/bin/sh -c 'echo other unit stopped >>/diary'\n")
	d.watch(unit(t, "kubelet6.service", "[Service]\nExecStart=/bin/sleep infinity\n"+
		"ExecStopPost=/bin/sh -c 'echo kubelet stopped, jobs of the shutdown: $$(systemctl list-jobs --no-pager | grep -c poweroff.target) >>/diary'\n"))
	powerOff(t)
	<-t.Context().Done() // the process ends before
}
