package standard

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/guard/service"
)

// ended runs a script to its end, and returns how it ended.
func ended(t *testing.T, log *childLog, script string) guard.Process {
	t.Helper()
	c, err := service.NewChild(service.ChildOptions{Command: []string{"/bin/sh", "-c", script}, Output: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last guard.Process
	err = c.Watch(ctx, func() {
		if last, err = c.State(t.Context()); err != nil || !last.Exists {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// A child that writes without end fills no disk, and its last lines are there.
func TestTheLogOfAChildIsBounded(t *testing.T) {
	dir := t.TempDir()
	log, err := openChildLog(filepath.Join(dir, "kubelet.log"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if p := ended(t, log, "yes a line of a log | head -c 30000000; echo the last line"); p.ExitCode == nil || *p.ExitCode != 0 {
		t.Errorf("it ended as %+v", p)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Size() > 1<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, mode %v, %v", e.Name(), info.Size(), info.Mode(), err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "kubelet.log")); err != nil || !strings.HasSuffix(string(data), "the last line\n") {
		t.Errorf("the end is %q, %v", data[max(0, len(data)-100):], err)
	}
}

// A child whose log cannot be written goes on, and is logged again once it can be.
func TestALogThatCannotBeWrittenEndsNoChild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := openChildLog(filepath.Join(dir, "kubelet.log"), 100)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if p := ended(t, log, "yes | head -c 1000000; exit 3"); p.ExitCode == nil || *p.ExitCode != 3 {
		t.Errorf("it ended as %+v", p)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	ended(t, log, "echo again")
	if data, err := os.ReadFile(filepath.Join(dir, "kubelet.log")); err != nil || string(data) != "again\n" {
		t.Errorf("%q, %v", data, err)
	}
}
