//go:build real

package controlplanetest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var shared Shared

func TestMain(m *testing.M) { shared.Main(m) }

// failedTest is a test that has failed and ends when the real one says so.
type failedTest struct {
	testing.TB
	cleanups []func()
	logged   strings.Builder
}

func (f *failedTest) Failed() bool               { return true }
func (f *failedTest) Cleanup(cleanup func())     { f.cleanups = append(f.cleanups, cleanup) }
func (f *failedTest) Logf(s string, args ...any) { fmt.Fprintf(&f.logged, s, args...) }

func (f *failedTest) end() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

func TestFailedTestShowsTheLogAndLeavesNothing(t *testing.T) {
	test := &failedTest{TB: t}
	server := Start(test)
	if _, err := os.Stat(server.Process.DataDir()); err != nil {
		t.Fatalf("data directory: %v", err)
	}

	test.end()
	if !strings.Contains(test.logged.String(), ".go:") {
		t.Errorf("a failed test shows %q, want lines of the server's log", test.logged.String())
	}
	<-server.Process.Exited()
	if _, err := os.Stat(server.Process.DataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data directory after the test: got %v, want it removed", err)
	}
}

func TestSharedServerIsTheSameForAll(t *testing.T) {
	first, second := shared.Server(t), shared.Server(t)
	if first != second {
		t.Errorf("got servers at %s and %s, want one", first.Process.Address(), second.Process.Address())
	}
}

func TestTestsThatShareHaveNamespacesOfTheirOwn(t *testing.T) {
	server := shared.Server(t)
	first, second := server.Namespace(t), server.Namespace(t)
	if first == second {
		t.Errorf("got namespace %s twice", first)
	}
	for _, namespace := range []string{first, second} {
		pod := server.CreatePod(t, Pod(namespace, "same-name", "some-node"))
		if got := server.GetPod(t, namespace, "same-name"); got.UID != pod.UID || got.Spec.NodeName != "some-node" {
			t.Errorf("pod in %s: got UID %s on node %q, want %s on some-node", namespace, got.UID, got.Spec.NodeName, pod.UID)
		}
	}
}

func TestNodeMayBeAskedForTwice(t *testing.T) {
	server := shared.Server(t)
	server.Node(t, "twice")
	server.Node(t, "twice")
}

func TestPrefixIsLegalForEveryTestName(t *testing.T) {
	legal := regexp.MustCompile(`^[a-z0-9][-a-z0-9]*-$`)
	for _, name := range []string{"TestX", "TestX/sub_test#01", "TestÜmlaut/日本", "Test" + strings.Repeat("Long/", 50)} {
		// The server adds five characters; the limit is 63.
		if got := prefix(name); !legal.MatchString(got) || len(got) > 58 {
			t.Errorf("prefix(%q): got %q, want a legal start of a namespace's name", name, got)
		}
	}
}
