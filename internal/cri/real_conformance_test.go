//go:build real

package cri

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/image"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/runtimetest"
	"github.com/statusd/statusd/test/stock"
	"github.com/statusd/statusd/test/testlog"
)

// toolbox is an image with the programs that the conformance suite uses.
const toolbox = "docker.io/library/toolbox:1"

// loadToolbox gives containerd the image.
func loadToolbox(t *testing.T, containerd *stock.Containerd) {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	busybox, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{}
	for _, applet := range []string{"sh", "sleep", "cat", "head", "tail", "tr", "stty", "setsid", "printf", "kill", "true", "test", "dd"} {
		links["bin/"+applet] = "busybox"
	}
	var archive bytes.Buffer
	err = image.Write(&archive, image.Image{
		Name: toolbox, Links: links, Env: []string{"PATH=/bin"}, Cmd: []string{"/bin/sh"},
		Files: map[string]image.File{"bin/busybox": {Content: busybox, Mode: 0o755}, "etc/passwd": {Content: []byte("root:x:0:0:root:/:/bin/sh\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "toolbox.tar")
	if err := os.WriteFile(file, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := containerd.LoadImage(t.Context(), file); err != nil {
		t.Fatal(err)
	}
}

// open is a runtime over containerd that runs until close.
func open(t *testing.T, containerd *stock.Containerd, dir string, log *slog.Logger) (*Runtime, func()) {
	t.Helper()
	rt, err := New(Options{
		Dir: dir, Endpoint: "unix://" + containerd.Socket(), LogDir: filepath.Join(dir, "logs"), CgroupParent: filepath.Base(containerd.Dir),
		Addresses: func() []string { return []string{"127.0.0.1"} }, Logger: log, Relist: 100 * time.Millisecond,
		diskUsage: func(path string) (used, size uint64, err error) { // how full the machine is does not matter here
			_, size, err = diskUsage(path)
			return 0, size, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rt.Run(ctx) }()
	return rt, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The runtime does over a real containerd what each runtime must.
func TestRealConformance(t *testing.T) {
	containerd := stock.StartContainerd(t)
	loadToolbox(t, containerd)
	runtimetest.Run(t, runtimetest.Config{
		Open: func(t *testing.T, dir string) (runtime.Runtime, func()) {
			rt, end := open(t, containerd, dir, testlog.New(t))
			return rt, end
		},
		Image: toolbox, MissingImage: "docker.io/library/no-such-image:1", DropsCarriageReturns: true,
	})
}
