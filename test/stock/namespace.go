package stock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initVariable makes a copy of this program the first process of a node's namespaces.
const initVariable = "STATUSD_STOCK_INIT"

// A test binary has no main function that could call this.
func init() {
	if os.Getenv(initVariable) != "" {
		os.Exit(beInit())
	}
}

// beInit makes the mounts, says so, and collects orphans until it is killed.
func beInit() int {
	if err := Mounts(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Stdout.WriteString("ready\n")
	os.Stdout.Close()
	children := make(chan os.Signal, 1)
	notifyChildren(children)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			<-children // there is one again
		}
	}
}

// Mounts makes the mounts of this process its own, and shows it the processes of its namespace. Call it
// in a new namespace of mounts.
func Mounts() error {
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
	// The kubelet shares the mounts of pods.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	return nil
}

// namespaces are those of a node, by their first process.
type namespaces struct {
	init        *Process
	mounts, pid *os.File
}

func newNamespaces() (*namespaces, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), initVariable+"=1")
	cmd.Stdout, cmd.Stderr = writer, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL, // the first process: all others go with it
		Setpgid:    true,
	}
	process, err := launch(cmd, nil)
	writer.Close()
	if err != nil {
		return nil, fmt.Errorf("namespaces of processes and mounts: %w", err)
	}
	n := &namespaces{init: process}
	if read, err := reader.Read(make([]byte, 16)); read == 0 {
		n.close()
		return nil, fmt.Errorf("the first process of the node ended before it was ready: %w", err)
	}
	if n.mounts, err = n.open("mnt"); err == nil {
		n.pid, err = n.open("pid")
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *namespaces) open(name string) (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/%d/ns/%s", n.init.PID(), name))
}

// close ends all processes.
func (n *namespaces) close() {
	n.init.Kill()
	n.mounts.Close()
	n.pid.Close()
}

// enter moves the thread of the calling goroutine into the namespaces: its opened files and started
// processes are then inside. The thread must be locked and never be used for anything else.
func (n *namespaces) enter() error {
	// Threads of a process share the directory that paths start at; this one must have its own.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Setns(int(n.mounts.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the namespace of mounts: %w", err)
	}
	if err := unix.Setns(int(n.pid.Fd()), unix.CLONE_NEWPID); err != nil {
		return fmt.Errorf("enter the namespace of processes: %w", err)
	}
	return nil
}

// launch starts the command, in the namespaces unless they are nil, from a thread that waits for its end: the kernel
// sends the signal for the death of the parent when the thread ends.
func launch(cmd *exec.Cmd, in *namespaces) (*Process, error) {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		var err error
		if in != nil {
			err = in.enter()
		}
		if err == nil {
			err = cmd.Start()
		}
		p.began = time.Now()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the state says it
			p.ended = time.Now()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}
