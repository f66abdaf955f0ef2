package certs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/statusd/statusd/test/testlog"
)

func testOptions(t *testing.T, node string) Options {
	dir := t.TempDir()
	return Options{
		NodeName: node, Directory: filepath.Join(dir, "pki"), Kubeconfig: filepath.Join(dir, "kubeconfig"),
		Logger: testlog.New(t),
	}
}

func TestBadKubeconfigsAreErrors(t *testing.T) {
	o := testOptions(t, "wrong")
	if err := os.WriteFile(o.Kubeconfig, []byte("garbage: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Needed(o.Kubeconfig, time.Now()); err == nil {
		t.Error("garbage passes for a kubeconfig")
	}
	o.Bootstrap = o.Kubeconfig
	if err := Obtain(t.Context(), o); err == nil {
		t.Error("garbage passes for a bootstrap kubeconfig")
	}
	o.Bootstrap = filepath.Join(o.Directory, "nowhere")
	if err := Obtain(t.Context(), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
}
