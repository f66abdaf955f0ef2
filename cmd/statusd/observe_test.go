package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/observer"
	"github.com/statusd/statusd/internal/queryapi"
)

// lockedBuffer is the log of a process, read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// untilTrue looks until a state is reached; the test's own timeout is the only bound.
func untilTrue(t *testing.T, log *lockedBuffer, what string, reached func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !reached() {
		select {
		case <-t.Context().Done():
			t.Fatalf("not reached: %s; the log:\n%s", what, log)
		case <-ticker.C:
		}
	}
}

// An observer starts and answers though no side does, tells systemd so, goes on with another config after SIGHUP but not with a bad
// one, lets no second one use its state, and ends in order.
func TestObserveBesideNothing(t *testing.T) {
	dir := t.TempDir()
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	file := filepath.Join(dir, "observe.yaml")
	kubeconfig := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u}]\ncurrent-context: c\n"
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(more string) {
		t.Helper()
		text := fmt.Sprintf("apiVersion: statusd/v1alpha1\nkind: ObserveConfiguration\nnodeName: n1\nkubeconfig: kubeconfig\nstateDir: state\nhealthzBindAddress: 127.0.0.1:0\n"+
			"hostRoot: %s\ncriEndpoint: unix://%s\nkubelet: {podsSocket: none, url: \"https://127.0.0.1:1\"}\n%s\n", dir, filepath.Join(dir, "cri.sock"), more)
		writeFile(t, file, text)
	}
	if err := os.Mkdir(filepath.Join(dir, "proc"), 0o755); err != nil { // of a machine without processes
		t.Fatal(err)
	}
	write("")
	var log lockedBuffer
	cmd := exec.Command(os.Args[0], "observe", "--config", file)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify.LocalAddr().String())
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	var ended error // read it after exited
	go func() {
		ended = cmd.Wait()
		close(exited)
	}()
	defer cmd.Process.Kill() // if the test has failed
	heard := func(want string) {
		t.Helper()
		message := make([]byte, 200)
		for over := false; ; {
			if err := notify.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			n, err := notify.Read(message)
			switch {
			case err == nil && strings.HasPrefix(string(message[:n]), want):
				return
			case err == nil, over: // what it sent before its end was read
				t.Fatalf("systemd hears %q, %v; want %s; the log:\n%s", message[:n], err, want, &log)
			}
			select {
			case <-exited:
				over = true
			default:
			}
		}
	}
	heard("READY=1")
	client := queryapi.NewSocketClient(filepath.Join(dir, "state", "statusd.sock"))
	defer client.Close()
	untilTrue(t, &log, "the audit says that the API does not answer", func() bool {
		report, err := client.Audit(t.Context())
		return err == nil && report.Node == "n1" && report.Sides["api"].Err != ""
	})
	if err := command([]string{"observe", "--config", file}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "in use by another observer") {
		t.Errorf("a second observer ends with %v", err)
	}

	write("repair: {kinds: [ClockSkew]}")
	hangUp := func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	hangUp()
	untilTrue(t, &log, "a bad config is refused", func() bool {
		return strings.Contains(log.String(), "config not reloaded, the old one stays in force") && strings.Contains(log.String(), "repair.kinds[0]")
	})
	write("outputs: {events: true}")
	hangUp()
	heard("RELOADING=1")
	heard("READY=1")
	untilTrue(t, &log, "a good one is in force", func() bool { return strings.Contains(log.String(), "events=true") })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	heard("STOPPING=1")
	if <-exited; ended != nil {
		t.Errorf("it ends with %v; the log:\n%s", ended, &log)
	}
	if _, err := os.Stat(filepath.Join(dir, "state", "history")); err != nil {
		t.Errorf("the history is not kept: %v", err)
	}
}

// The commands that ask look where an observer listens by default.
func TestObserversAreAskedByDefault(t *testing.T) {
	config := observer.Default()
	places := defaultPlaces()
	if len(places) != 2 || places[1].socket != config.QuerySocketPath() || places[1].server != "http://"+config.HealthzBindAddress {
		t.Errorf("asked are %+v", places)
	}
}
