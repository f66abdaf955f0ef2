package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/doctor"
)

func TestDoctor_WrongConfig_IsAFindingAndExitCode1(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "statusd.yaml")
	if err := os.WriteFile(file, []byte("nodName: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, product := range []string{"--observe=false", "--observe"} {
		var out bytes.Buffer
		err := command([]string{"doctor", product, "--config", file, "--state-dir", dir, "-o", "json"}, &out)
		if code := exitError(0); !errors.As(err, &code) || code != exitFailure {
			t.Errorf("%s: got %v, want exit code 1", product, err)
		}
		var findings []doctor.Finding
		if err := json.Unmarshal(out.Bytes(), &findings); err != nil {
			t.Fatalf("%s: %v in %s", product, err, out.String())
		}
		if f := findings[0]; f.Check != "config" || f.Result != doctor.Failed || !strings.Contains(f.Found, "nodName") || !strings.HasSuffix(f.Found, "; the other checks use the default config") {
			t.Errorf("%s: got %+v, want the unknown field", product, f)
		}
	}
}

func TestDoctor_Table_HasWhatToDo(t *testing.T) {
	var out bytes.Buffer
	err := command([]string{"doctor", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "--state-dir", t.TempDir()}, &out)
	if code := exitError(0); !errors.As(err, &code) || code != exitFailure {
		t.Errorf("got %v, want exit code 1", err)
	}
	for _, want := range []string{"CHECK", "API server", "→ set kubeconfig to a readable file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in\n%s", want, out.String())
		}
	}
}
