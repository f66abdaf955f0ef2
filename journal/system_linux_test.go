package journal

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// init adds the roles that need limits, mounts and users of Linux.
func init() {
	maps.Copy(children, map[string]func(args []string) error{
		"full disk":    fullDiskChild,
		"opens full":   opensFullChild,
		"opens frozen": opensFrozenChild,
		"unprivileged": unprivilegedChild,
	})
}

// opensFullChild cannot write a byte to any file when it opens the journal.
func opensFullChild(args []string) error {
	path := args[0]
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		return err
	}
	d, err := Open(path, Options{NodeName: "node-1"})
	if err != nil {
		return err
	}
	if err := readable(d, path, ErrNoSpace); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	return writable(d, path)
}

func TestOpen_ARealFullDisk(t *testing.T) {
	path := onePod(t)
	runChild(t, "opens full", path)
}

// opensFrozenChild, in a mount namespace of its own, opens the journal on a read-only file
// system.
func opensFrozenChild(args []string) error {
	path := args[0]
	dir := filepath.Dir(path)
	if err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount(dir, dir, "", syscall.MS_BIND, ""),
		syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""),
	); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	for range 2 { // the second time without the lock file
		d, err := Open(path, Options{NodeName: "node-1"})
		if err != nil {
			return err
		}
		if err := errors.Join(readable(d, path, ErrReadOnly), d.Close()); err != nil {
			return err
		}
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			return err
		}
		if err := os.Remove(path + lockSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := errors.Join(
			syscall.Mount(dir, dir, "", syscall.MS_BIND, ""),
			syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""),
		); err != nil {
			return err
		}
	}
	return nil
}

func TestOpen_ARealReadOnlyFilesystem(t *testing.T) {
	path := onePod(t)
	cmd := child(t, "opens frozen", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if output, err := cmd.Output(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	wantIntact(t, path)
}

// unprivilegedChild gives up root, which may write anywhere, before it tries.
func unprivilegedChild(args []string) error {
	path, sentinel := args[0], map[string]error{"read-only": ErrReadOnly, "permission": ErrPermission}[args[1]]
	if os.Geteuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	_, err := Open(path, Options{NodeName: "node-1"})
	return wantRefusal(err, sentinel, path)
}

// openPath lets everybody pass the directories above the journal.
func openPath(t *testing.T, path string) {
	t.Helper()
	for dir := filepath.Dir(path); strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpen_ReadOnlyDirectory(t *testing.T) {
	path := onePod(t)
	openPath(t, path)
	for _, name := range []string{path, path + copySuffix} { // only the directory is in the way
		if err := os.Chmod(name, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path + lockSuffix); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o555); err != nil {
		t.Fatal(err)
	}
	runChild(t, "unprivileged", path, "read-only")
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	wantIntact(t, path)
}

func TestOpen_MissingPermission(t *testing.T) {
	path := onePod(t)
	openPath(t, path)
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path+lockSuffix, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	runChild(t, "unprivileged", path, "permission")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	wantIntact(t, path)
}

// fullDiskChild limits the size of files to what the journal has now, so that it cannot
// grow, and fills it.
func fullDiskChild(args []string) error {
	path := args[0]
	signal.Ignore(syscall.SIGXFSZ)
	d, err := Open(path, Options{NodeName: "node-1"})
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(info.Size()), Max: before.Max}); err != nil {
		return err
	}
	stored := 0
	for ; err == nil && stored < 10000; stored++ {
		err = mark(d, types.UID(fmt.Sprintf("pod-%05d", stored)), "infeasible")
	}
	stored-- // the last one failed
	if err := errors.Join(wantRefusal(err, ErrWrite, path), wantRefusal(err, ErrNoSpace, path)); err != nil {
		return err
	}
	if got := len(marks(d)); got != stored+1 {
		return fmt.Errorf("memory has %d statuses after %d acknowledged writes and one from before", got, stored)
	}
	if err := d.RemovePod("pod-00000"); err != nil {
		return fmt.Errorf("a write that needs no more space, after one that did: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	if err := mark(d, "pod-00000", "infeasible"); err != nil {
		return fmt.Errorf("a write after space was freed: %w", err)
	}
	if err := d.Close(); err != nil {
		return err
	}
	again, err := Open(path, Options{NodeName: "node-1"})
	if err != nil {
		return err
	}
	if got := len(marks(again)); got != stored+1 || again.Recovery().Outcome != OutcomeClean {
		return fmt.Errorf("after reopening: %d statuses, want %d; %v", got, stored+1, again.Recovery())
	}
	return again.Close()
}

func TestNoSpace_WritesFailUntilThereIsSpaceAgain(t *testing.T) {
	path := onePod(t)
	runChild(t, "full disk", path)
	wantIntact(t, path)
}
