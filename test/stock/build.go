package stock

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/test/controlplane"
)

// BuildKubelet builds the kubelet unless it has been built, and returns its path. It says on w what
// takes minutes.
func BuildKubelet(ctx context.Context, w io.Writer) (string, error) {
	server, err := controlplane.Build(ctx, w)
	if err != nil {
		return "", err
	}
	top := filepath.Dir(filepath.Dir(server))
	file := filepath.Join(top, "build", "kubelet-1.36.3")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	// Tests of several packages may build it at the same time.
	lock, err := os.OpenFile(filepath.Join(top, "build", ".kubelet.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(top, "test", "upstream", "kubernetes.sh"), "kubelet", file)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build the kubelet: %w", err)
	}
	return file, nil
}
