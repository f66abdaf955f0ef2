package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/test/stock"
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
	if err := errors.Join(stock.RemoveGroups(groupNames[agent]), os.RemoveAll(dir)); err != nil {
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
	goruntime.LockOSThread() // Pdeathsig is sent when the parent's thread ends
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
	if err := stock.Mounts(); err != nil {
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

// groupNames are the control groups that the agents make their own ones in.
var groupNames = map[string]string{"kubelet": "kubepods", "kubelet-statusd": "kubepods", "doors": "kubepods", "statusd": "statusd-lives", "statusd-cri": "statusd-lives-cri"}
