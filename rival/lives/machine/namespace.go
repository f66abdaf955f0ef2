package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// insideVariable says to a copy of this program what it is: empty on the outside.
const insideVariable = "LIVES_INSIDE"

const (
	insideInit    = "init"    // the first process of the machine
	insideProgram = "program" // what the machine was made for
)

// Enter returns nil in a copy of this program that is alone on a machine of its own, for that agent.
// Outside, it starts that copy with the same arguments, waits for it, cleans up, and ends the program.
func Enter(agent string) error {
	switch os.Getenv(insideVariable) {
	case insideProgram:
		return nil
	case insideInit:
		os.Exit(runInit())
	}
	if err := needs(agent); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lives-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	code := outside(dir)
	if err := errors.Join(removeGroups(agent), os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, "lives: clean up:", err)
		code = 1
	}
	os.Exit(code)
	return nil
}

// outside runs the machine and waits for it. An interrupt is for the program inside; its end
// is the end of the machine.
func outside(dir string) int {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	cmd := again(insideInit)
	cmd.Env = append(cmd.Env, dirVariable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL, // the first process: all others go with it
		Setpgid:    true,
	}
	goruntime.LockOSThread() // the signal for the death of the parent is for that of the thread
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "lives: this needs namespaces of processes and mounts:", err)
		return 1
	}
	go func() {
		for s := range interrupts {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait() // the exit code says it
	return cmd.ProcessState.ExitCode()
}

// again is this program with the same arguments.
func again(inside string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, insideVariable+"=")
	}), insideVariable+"="+inside)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// runInit is the first process of the machine: it collects all orphans and ends with the program.
func runInit() int {
	if err := mounts(); err != nil {
		fmt.Fprintln(os.Stderr, "lives:", err)
		return 1
	}
	cmd := again(insideProgram)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "lives:", err)
		return 1
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range interrupts {
			_ = cmd.Process.Signal(s)
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid == cmd.Process.Pid {
			return status.ExitStatus()
		}
	}
}

// mounts makes the mounts of this process its own, and shows it its own processes.
func mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// The kubelet and containerd write to some places whatever their settings say.
	for _, dir := range []string{"/run", "/var/lib", "/var/log"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	// The kubelet wants to share the mounts of pods.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	return nil
}

// groupRoots are where control groups can appear: in the one hierarchy of version 2, or in each of version 1.
func groupRoots() ([]string, error) {
	roots, err := filepath.Glob("/sys/fs/cgroup/*")
	return append(roots, "/sys/fs/cgroup"), err
}

// groupNames are the control groups that the agents make their own ones in.
var groupNames = map[string]string{"kubelet": "kubepods", "doors": "kubepods", "statusd": "statusd-lives"}

// groups are the control groups of the agent that exist.
func groups(agent string) ([]string, error) {
	roots, err := groupRoots()
	var found []string
	for _, root := range roots {
		if group := filepath.Join(root, groupNames[agent]); isDirectory(group) {
			found = append(found, group)
		}
	}
	return found, err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// removeGroups removes the control groups that the machine has left. Its processes have ended, but
// the kernel may need a moment to forget them.
func removeGroups(agent string) error {
	left, err := groups(agent)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 10*time.Second, errors.New("a control group is still in use"))
	defer cancel()
	for _, group := range left {
		if err := await(ctx, func() error { return removeTree(group) }); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a control group and those below it.
func removeTree(group string) error {
	below, err := os.ReadDir(group)
	if err != nil {
		return err
	}
	for _, entry := range below {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(group, entry.Name())); err != nil {
				return err
			}
		}
	}
	return unix.Rmdir(group)
}
