package binary

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// checkout is a tree that looks like this repository, with a control plane that compiles at once;
// the working directory is inside of it.
func checkout(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	write(t, root, "go.mod", "module "+rootModule+"\n")
	write(t, root, "test/controlplane/server/go.mod", "module "+rootModule+"/test/controlplane/server\n\ngo 1.26.0\n")
	write(t, root, "test/controlplane/server/main.go", "package main\n\nfunc main() { print(\"first\") }\n")
	write(t, root, "test/controlplane/binary/binary.go", "package binary\n")
	t.Chdir(filepath.Join(root, "test", "controlplane", "server"))
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// age sets a file's time relative to now.
func age(t *testing.T, root, name string, by time.Duration) {
	t.Helper()
	when := time.Now().Add(-by)
	if err := os.Chtimes(filepath.Join(root, name), when, when); err != nil {
		t.Fatal(err)
	}
}

func says(t *testing.T, path string) string {
	t.Helper()
	output, err := exec.Command(path).CombinedOutput()
	if err != nil {
		t.Fatalf("run %s: %v\n%s", path, err, output)
	}
	return string(output)
}

func TestManyAtOnceBuildOnce(t *testing.T) {
	root := checkout(t)
	var said lockedBuffer
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			path, err := Build(t.Context(), &said)
			if err != nil || path != filepath.Join(root, "bin", "controlplane") {
				t.Errorf("build: got %q, %v, want bin/controlplane of %s", path, err, root)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(said.String(), "minutes"); n != 1 {
		t.Errorf("got %d builds, want 1; they said:\n%s", n, said.String())
	}
	entries, err := os.ReadDir(filepath.Join(root, "bin"))
	if err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v in bin, want the binary and the lock only", entries, err)
	}
}

func TestChangedSourceIsBuiltAgain(t *testing.T) {
	root := checkout(t)
	path, err := Build(t.Context(), io.Discard)
	if err != nil {
		t.Fatalf("first build: %v", err)
	}
	if got := says(t, path); got != "first" {
		t.Fatalf("the first binary says %q, want first", got)
	}
	write(t, root, "test/controlplane/server/main.go", "package main\n\nfunc main() { print(\"second\") }\n")
	if _, err := Build(t.Context(), io.Discard); err != nil {
		t.Fatalf("second build: %v", err)
	}
	if got := says(t, path); got != "second" {
		t.Errorf("after a change the binary says %q, want second", got)
	}
}

func TestBrokenSourceShowsTheCompilersWordsAndKeepsTheOldBinary(t *testing.T) {
	root := checkout(t)
	path, err := Build(t.Context(), io.Discard)
	if err != nil {
		t.Fatalf("first build: %v", err)
	}
	write(t, root, "test/controlplane/server/main.go", "package main\n\nfunc main() { undefinedName() }\n")
	if _, err := Build(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("got %v, want an error with the compiler's words", err)
	}
	if got := says(t, path); got != "first" {
		t.Errorf("the binary says %q, want first", got)
	}
}

func TestFreshnessLooksAtSourcesOnly(t *testing.T) {
	for _, c := range []struct {
		newer string
		want  bool
	}{
		{"test/controlplane/server/main.go", false},
		{"test/controlplane/server/go.mod", false},
		{"test/controlplane/binary/binary.go", false},
		{"test/controlplane/server/main_test.go", true},
		{"test/controlplane/server/README.md", true},
		{"other/other.go", true},
	} {
		root := checkout(t)
		write(t, root, "bin/controlplane", "")
		for _, name := range []string{"test/controlplane/server/go.mod", "test/controlplane/server/main.go", "test/controlplane/binary/binary.go"} {
			age(t, root, name, 2*time.Hour)
		}
		age(t, root, "bin/controlplane", time.Hour)
		if fresh, err := isFresh(filepath.Join(root, "bin", "controlplane"), root, sources); err != nil || !fresh {
			t.Fatalf("newer than all sources: got fresh %t, %v, want true", fresh, err)
		}
		if _, err := os.Stat(filepath.Join(root, c.newer)); err != nil {
			write(t, root, c.newer, "")
		}
		age(t, root, c.newer, 0)
		if fresh, err := isFresh(filepath.Join(root, "bin", "controlplane"), root, sources); err != nil || fresh != c.want {
			t.Errorf("%s is newer: got fresh %t, %v, want %t", c.newer, fresh, err, c.want)
		}
	}
}

func TestVersionIsTheOneThatTheModuleRequires(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	requirements, err := os.ReadFile(filepath.Join(root, "test", "controlplane", "server", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\tk8s.io/kubernetes " + kubernetesVersion + "\n"; !bytes.Contains(requirements, []byte(want)) {
		t.Errorf("test/controlplane/server/go.mod does not contain %q: the server would lie about its version", want)
	}
}

func TestOutsideACheckoutSaysSo(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Build(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "not inside a checkout") {
		t.Errorf("got %v, want an error that says where it must run", err)
	}
}

func TestWaitForAnotherBuildCanBeCanceled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var said bytes.Buffer
	if _, err := lock(ctx, path, &said); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if !strings.Contains(said.String(), "waiting for another process") {
		t.Errorf("got %q, want a word on what it waits for", said.String())
	}
}

// lockedBuffer takes the words of several builds.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
