package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/test/progress"
)

// script makes a lab whose one test binary is a shell script.
func script(t *testing.T, text string) (*lab, suite) {
	t.Helper()
	l := &lab{root: t.TempDir(), dir: t.TempDir(), line: progress.On(&strings.Builder{})}
	s := suite{in: "."}
	if err := os.WriteFile(l.binary(s), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return l, s
}

// A mutant that hangs is ended with everything that it has started, also what has left its process group and its environment.
func TestMutantThatHangs_LeavesNoProcess(t *testing.T) {
	l, s := script(t, "setsid sh -c 'env -i sleep 600 & echo $! > inner; wait' &\necho $! > outer\nwhile ! test -s inner; do :; done\nwait\n")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for t.Context().Err() == nil {
			if text, err := os.ReadFile(filepath.Join(l.root, "inner")); err == nil && len(text) > 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, _, err := l.test(ctx, s, "", longest); err == nil {
		t.Error("a mutant that hangs was not ended")
	}
	for _, name := range []string{"inner", "outer"} {
		text, err := os.ReadFile(filepath.Join(l.root, name))
		if err != nil {
			t.Fatalf("the script did not start its children: %v", err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		gone(t, name, pid)
	}
}

// gone waits until a process has ended, which may take a moment after its SIGKILL.
func gone(t *testing.T, name string, pid int) {
	t.Helper()
	for syscall.Kill(pid, 0) == nil {
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err != nil || strings.Contains(string(stat), ") Z ") {
			return // it has ended, and nothing has collected it
		}
		if t.Context().Err() != nil {
			t.Fatalf("the %s process is left", name)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestMutantThatTakesTooLong_Hangs(t *testing.T) {
	l, s := script(t, "exec sleep 600\n")
	if _, late, err := l.test(t.Context(), s, "", time.Millisecond); !late || err == nil {
		t.Errorf("got late=%t, %v, want that it is ended", late, err)
	}
}

func TestTestsThatFailOrAreMissingWithoutAMutant_AreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"exit 1\n": "fails", "echo 'testing: warning: no tests to run'\n": "has no test", "exit 0\n": "",
	} {
		l, s := script(t, text)
		_, err := l.measure(t.Context(), s)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
