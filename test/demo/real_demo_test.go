//go:build real

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/controlplane"
)

// The demo shows its pods, ends all containers when it is interrupted, and goes on from
// there the next time: a job that was done is not done again.
func TestStandaloneDemoStopsAndGoesOn(t *testing.T) {
	binary, state := binaries.Path(t, binaries.Statusd), t.TempDir()
	t.Chdir("../..") // where make run runs it
	var jobs []string
	for range 2 {
		out := &transcript{more: make(chan struct{}, 1)}
		d := &demo{out: out, state: state, statusd: binary}
		ctx, interrupt := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.standalone(ctx) }()
		out.await(t, "job-local", "Completed")
		awaitPage(t, out)
		out.await(t, "init-chain-local", "2/2", "Running")
		interrupt()
		if err := <-done; err != nil {
			t.Fatalf("the demo ended with %v\n%s", err, out)
		}
		if left := processesOf(t, state); len(left) > 0 {
			t.Errorf("still running after the demo: %q", left)
		}
		directories, err := filepath.Glob(filepath.Join(state, "standalone/runtime/pods/*/containers/*/spec.json"))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, file := range directories {
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("all steps done")) {
				count++
			}
		}
		jobs = append(jobs, strings.Repeat("run ", count))
	}
	if jobs[0] != "run " || jobs[1] != "run " {
		t.Errorf("the job was started %q in the two rounds together, want once in all", jobs)
	}
}

// While the control plane is built, which takes minutes the first time, the node shows its pods and its page. Then it joins: a
// job that was done is not done again, and the page stays where it was.
func TestRun_ShowsTheNodeBeforeTheControlPlaneIsBuilt(t *testing.T) {
	binary, state := binaries.Path(t, binaries.Statusd), t.TempDir()
	t.Chdir("../..") // where make run runs it
	out := &transcript{more: make(chan struct{}, 1)}
	release := make(chan struct{})
	d := &demo{
		out: out, state: state, statusd: binary, built: func() bool { return false },
		build: func(ctx context.Context, w io.Writer) (string, error) {
			<-release
			return controlplane.Build(ctx, w)
		},
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	done := make(chan error, 1)
	go func() { done <- d.joined(ctx) }()
	out.await(t, "job-local", "Completed")
	page := awaitPage(t, out)
	close(release)
	out.await(t, "joining the cluster")
	out.await(t, "flapping ", "Running") // a pod of the API
	if again := awaitPage(t, out); again != page {
		t.Errorf("the page has moved from %s to %s", page, again)
	}
	interrupt()
	if err := <-done; err != nil {
		t.Fatalf("the demo ended with %v\n%s", err, out)
	}
	if left := processesOf(t, state); len(left) > 0 {
		t.Errorf("still running after the demo: %q", left)
	}
}

// awaitPage opens the page whose address the demo has printed last, and returns the address.
func awaitPage(t *testing.T, out *transcript) (address string) {
	t.Helper()
	if all := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindAllString(out.String(), -1); len(all) > 0 {
		address = all[len(all)-1]
	}
	response, err := http.Get(address)
	if err != nil {
		t.Fatalf("the page at %q: %v", address, err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the page at %s is %s of %s", address, response.Status, kind)
	}
	return address
}

// processesOf are the command lines of processes that name the directory or work in it.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if text, err := os.ReadFile(file); err == nil && (bytes.Contains(text, []byte(dir)) || worksIn(pid, dir)) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}
