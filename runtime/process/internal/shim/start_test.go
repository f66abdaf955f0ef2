package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLookPathUsesTheContainersPathAndDirectory(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/tool": 0o755, "bin/plain": 0o644, "bin/dir/x": 0o755, "own": 0o755} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	path := "PATH=/nowhere:" + filepath.Join(dir, "bin")
	for _, c := range []struct {
		command string
		env     []string
		want    string
		wantErr string
	}{
		{"tool", []string{path}, dir + "/bin/tool", ""},
		{"tool", []string{path, "PATH=/nowhere"}, "", "not found in $PATH"}, // the last value counts
		{"tool", nil, "", "not found in $PATH"},
		{"tool", []string{"PATH=bin"}, dir + "/bin/tool", ""}, // from the working directory
		{"plain", []string{path}, "", "permission denied"},
		{"dir", []string{path}, "", "not found in $PATH"},
		{"/some/where", nil, "/some/where", ""},
		{"./own", nil, "./own", ""},
	} {
		got, err := LookPath(c.command, dir, c.env)
		if got != c.want || (err == nil) != (c.wantErr == "") || (err != nil && !strings.Contains(err.Error(), c.wantErr)) {
			t.Errorf("%s with %q: got %q, %v; want %q, %q", c.command, c.env, got, err, c.want, c.wantErr)
		}
	}
}
