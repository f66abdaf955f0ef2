package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNodeNameOfASharedServer_BelongsToTheFirstProgram(t *testing.T) {
	p := &Process{claims: t.TempDir()}
	if err := p.claim("mine"); err != nil {
		t.Error(err)
	}
	if err := p.claim("mine"); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if err := os.Symlink("/tmp/other.test", filepath.Join(p.claims, "theirs")); err != nil {
		t.Fatal(err)
	}
	if err := p.claim("theirs"); err == nil || !strings.Contains(err.Error(), "in use by other.test") {
		t.Errorf("a name of another program: %v", err)
	}
	if err := (&Process{}).claim("theirs"); err != nil {
		t.Errorf("a server that is not shared: %v", err)
	}
}

func TestChildSaysWhyItEnded(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"echo controlplane: port in use >&2; exit 1", "port in use"},
		{"exit 3", "exit status 3"},
		{"exit 0", "exit status 0"},
		{"kill -9 $$", "signal: killed"},
	} {
		r, err := startRun("sh", "-c", c.script)
		if err != nil {
			t.Fatal(err)
		}
		<-r.Exited
		if got := r.reason(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
	}
}

func TestMissingBinaryIsAnError(t *testing.T) {
	if _, err := startRun("/nonexistent/controlplane"); err == nil {
		t.Error("a binary that does not exist was started")
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	for _, c := range []struct {
		log  string
		n    int
		want string
	}{
		{"", 2, ""},
		{"a\n", 2, "a\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nunfinished", 2, "b\nunfinished"},
		{strings.Repeat("x", 500) + "\n", 1, strings.Repeat("x", 400) + "…\n"},
	} {
		if got := Tail(c.log, c.n); got != c.want {
			t.Errorf("Tail(%q, %d): got %q, want %q", c.log, c.n, got, c.want)
		}
	}
}
