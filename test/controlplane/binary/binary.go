package binary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/gobuild"
)

const (
	rootModule = "github.com/statusd/statusd"

	// kubernetesVersion is what the server says it is. It is the version that server/go.mod
	// requires; a binary built from a module cannot know it by itself.
	kubernetesVersion = "v1.36.3"

	// Variable names the program to use in the place of bin/controlplane, as make compat-servers does.
	Variable = "STATUSD_CONTROLPLANE_PROGRAM"
)

// sources are what the binary is made of, relative to the module root. This package is one of
// them: it decides how the binary is linked.
var sources = []string{"test/controlplane/server", "test/controlplane/binary"}

// Build returns the path of the binary. It first builds a missing binary, or one that is older than
// its sources, and prints on w that this takes minutes.
func Build(ctx context.Context, w io.Writer) (string, error) {
	if path := os.Getenv(Variable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("control plane binary of %s: %w", Variable, err)
		}
		return path, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "controlplane")
	unlock, err := lock(ctx, filepath.Join(root, "bin", ".controlplane.lock"), w)
	if err != nil {
		return "", err
	}
	defer unlock()

	fresh, err := isFresh(path, root, sources)
	if err != nil {
		return "", err
	}
	if fresh {
		return path, nil
	}
	return path, compile(ctx, root, path, w)
}

// Built reports whether Build has nothing to do.
func Built() bool {
	root, err := moduleRoot()
	if err != nil {
		return false
	}
	fresh, err := isFresh(filepath.Join(root, "bin", "controlplane"), root, sources)
	return err == nil && fresh
}

// moduleRoot is the nearest directory above the working directory that holds the root module; a
// nested module's own go.mod is passed by.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("control plane binary: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte("module "+rootModule+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("control plane binary: %s is not inside a checkout of %s, where its sources are", start, rootModule)
		}
	}
}

// lock waits for its turn. It polls, because a wait for a file lock cannot be canceled.
func lock(ctx context.Context, path string, w io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("control plane binary: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("control plane binary: %w", err)
	}
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for told := false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("control plane binary: lock %s: %w", path, err)
		}
		if !told {
			told = true
			fmt.Fprintln(w, "controlplane: waiting for another process that builds bin/controlplane")
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("control plane binary: waiting for another process to build it: %w", ctx.Err())
		}
	}
}

// isFresh reports whether the binary is there and no source is newer.
func isFresh(path, root string, sources []string) (bool, error) {
	built, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("control plane binary: %w", err)
	}
	fresh := true
	for _, source := range sources {
		err := filepath.WalkDir(filepath.Join(root, source), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !isSource(name) {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			fresh = fresh && !info.ModTime().After(built.ModTime())
			return nil
		})
		if err != nil {
			return false, fmt.Errorf("control plane sources: %w", err)
		}
	}
	return fresh, nil
}

func isSource(name string) bool {
	base := filepath.Base(name)
	return base == "go.mod" || base == "go.sum" || (strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go"))
}

// compile builds aside and renames, so that a server that runs from the old file is not disturbed.
func compile(ctx context.Context, root, path string, w io.Writer) error {
	fmt.Fprintln(w, "controlplane: building bin/controlplane. The first build takes 7 to 8 minutes on 2 cores: it compiles kube-apiserver, etcd, kube-scheduler and kube-controller-manager. Later ones come from Go's build cache.")
	begin := time.Now()
	unfinished := path + ".unfinished"
	defer os.Remove(unfinished)

	build := gobuild.Command{
		Name: "bin/controlplane", Dir: filepath.Join(root, "test", "controlplane", "server"), Env: []string{"GOWORK=off"},
		// -s -w leaves out what only a debugger reads, a third of the file.
		Flags:    []string{"-o", unfinished, "-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion=" + kubernetesVersion},
		Packages: []string{"."},
	}
	if err := build.Run(ctx, w); err != nil {
		return fmt.Errorf("control plane binary: %w", err)
	}
	// A source that is saved during the build must count as newer than the binary.
	if err := os.Chtimes(unfinished, begin, begin); err != nil {
		return fmt.Errorf("control plane binary: %w", err)
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("control plane binary: %w", err)
	}
	return nil
}
