package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/test/child"
	"github.com/statusd/statusd/test/stock"
)

const (
	// nodeAddress is the address of the device which a node's kubelet listens on.
	nodeAddress = "172.30.255.1"
	// nodePort is where some specs expect each kubelet, whatever its Node says.
	nodePort = 10250
	// podNetwork is the list of CNI plugins: pods are on a bridge, which is their way to the node and to each other.
	podNetwork = `{
	"cniVersion": "0.4.0", "name": "pods", "plugins": [
		{"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
			"ipam": {"type": "host-local", "ranges": [[{"subnet": "172.30.0.0/23"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
		{"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}
	]
}`
	// stopTime is how long the inner process has to remove its node before the kernel ends it.
	stopTime = 2 * time.Minute
)

// isolated runs this program again as the first process of namespaces of network, processes and mounts, and removes what
// namespaces do not: files and control groups.
func isolated(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return err
	}
	if err := os.Chmod(work, 0o711); err != nil { // containers with other users get through
		return err
	}
	err = inNamespaces(ctx, o, work)
	return errors.Join(err, remove(work))
}

func inNamespaces(ctx context.Context, o options, work string) error {
	cmd := exec.Command("/proc/self/exe", "inside", "-agent", o.agent, "-focus", o.focus, "-skip", o.skip, "-procs", fmt.Sprint(o.procs))
	cmd.Env = append(os.Environ(), "TMPDIR="+work)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	process, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	select {
	case <-process.Exited:
		if err := process.Err(); err != nil {
			return fmt.Errorf("the run ended: %w", err)
		}
		return nil
	case <-ctx.Done():
	}
	process.Signal(syscall.SIGTERM)
	select {
	case <-process.Exited:
	case <-time.After(stopTime):
		process.Kill()
	}
	return context.Cause(ctx)
}

// remove removes the directory of a run, and the control groups of nodes that the run did not remove itself.
func remove(work string) error {
	var errs []error
	left, _ := filepath.Glob(filepath.Join(work, "stock-*")) // the pattern is right
	for _, dir := range left {
		errs = append(errs, stock.RemoveGroups(filepath.Base(dir)))
	}
	return errors.Join(append(errs, os.RemoveAll(work))...)
}

// prepareNamespaces makes the mounts of this process its own, shows it its processes and a /tmp of the run, and gives its
// network a loopback interface and the node's address.
func prepareNamespaces(ctx context.Context) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := mountTemporary(); err != nil {
		return err
	}
	for _, args := range []string{
		"link set lo up",
		"link add node0 type bridge", // not every kernel has a dummy device
		"address add " + nodeAddress + "/24 dev node0",
		"link set node0 up",
	} {
		if output, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, output)
		}
	}
	return nil
}

// mountTemporary hides the machine's /tmp, which pods of specs write to, behind a directory of the run. The directories of
// the run and of the sources stay where they are.
func mountTemporary() error {
	sources, err := os.Getwd()
	if err != nil {
		return err
	}
	dir := filepath.Join(os.TempDir(), "tmp")
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		return err
	}
	kept := map[string]*os.File{}
	for _, path := range []string{os.TempDir(), sources} {
		if !strings.HasPrefix(path, "/tmp/") {
			continue
		}
		if kept[path], err = os.OpenFile(path, unix.O_PATH, 0); err != nil {
			return err
		}
		defer kept[path].Close()
	}
	if err := unix.Mount(dir, "/tmp", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount a directory of the run on /tmp: %w", err)
	}
	for path, file := range kept {
		if err := os.MkdirAll(path, 0o711); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s in the place of itself: %w", path, err)
		}
	}
	return os.Chdir(sources) // the mount, not what it hides
}
