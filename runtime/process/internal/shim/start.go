package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime/process/internal/confine"
	"github.com/statusd/statusd/runtime/process/internal/namespace"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// streams are the streams of a command: three files, or one terminal.
type streams struct {
	files    [3]*os.File
	terminal bool
}

func onTerminal(slave *os.File) streams {
	return streams{files: [3]*os.File{slave, slave, slave}, terminal: true}
}

// close closes the files, a terminal only once. Closing a nil file is an error that does not
// matter.
func (s streams) close() {
	for i, file := range s.files {
		if i == 0 || !s.terminal {
			file.Close()
		}
	}
}

// startMain starts a command of the container as the leader of a session of its own and
// returns its process number.
func startMain(spec record.Spec, command []string, to streams) (pid int, err error) {
	withoutOOMProtection(func() {
		OnOwnThread(func() { pid, err = startFromThread(spec, nil, command, to, 0) })
	})
	return pid, err
}

// OnOwnThread calls do on a thread that ends afterwards, so that do may change what a
// process inherits from the thread that starts it.
func OnOwnThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread() // a goroutine that ends locked takes its thread along
		if unix.Gettid() != os.Getpid() {
			do()
			return
		}
		// The first thread of a process cannot end before the process. While this
		// goroutine keeps it, another goroutine gets another thread.
		OnOwnThread(do)
		goruntime.UnlockOSThread()
	}()
	<-done
}

// startDependent is startMain for a command that the kernel kills when this process ends. It ties
// the command to the thread that starts it, which therefore stays.
func startDependent(spec record.Spec, main *proc.ID, command []string, to streams) (pid int, err error) {
	started := make(chan struct{})
	go OnOwnThread(func() {
		withoutOOMProtection(func() { pid, err = startFromThread(spec, main, command, to, unix.SIGKILL) })
		close(started)
		select {}
	})
	<-started
	return pid, err
}

// startFromThread needs a thread of its own. The command gets the signal, unless it is 0, when
// the thread ends.
func startFromThread(spec record.Spec, main *proc.ID, command []string, to streams, whenThreadEnds syscall.Signal) (int, error) {
	attributes, release, err := EnterContainer(spec, main)
	if err != nil {
		return 0, err
	}
	defer release()
	path, err := LookPath(command[0], spec.Dir, spec.Env) // as the container sees it
	if err != nil {
		return 0, err
	}
	attributes.Pdeathsig = whenThreadEnds
	attributes.Setsid, attributes.Setctty = true, to.terminal // the controlling terminal of the command
	process, err := os.StartProcess(path, command, &os.ProcAttr{
		Dir: spec.Dir, Env: withTerm(spec.Env, to.terminal), Files: to.files[:], Sys: attributes,
	})
	if err != nil {
		return 0, explain(err, spec)
	}
	// The shim waits for all of its children at once, so that nothing else may wait for
	// this one.
	pid := process.Pid
	return pid, process.Release()
}

// EnterContainer puts the calling thread into the container and returns the attributes to start a
// process of the container from it. EnterContainer needs a thread of its own, see OnOwnThread. The caller calls
// release when the process was started. Main is the container's command, whose view of the machine
// the thread joins; nil creates the view.
func EnterContainer(spec record.Spec, main *proc.ID) (attributes *syscall.SysProcAttr, release func(), err error) {
	attributes, release = &syscall.SysProcAttr{Credential: Credential(spec.User)}, func() {}
	if unified := cgroup.Unified(spec.Cgroup); unified != "" {
		dir, err := os.Open(unified)
		if err != nil {
			return nil, nil, err
		}
		attributes.UseCgroupFD, attributes.CgroupFD = true, int(dir.Fd())
		release = func() { dir.Close() }
	}
	if err := cgroup.JoinThread(spec.Cgroup); err != nil {
		release()
		return nil, nil, err
	}
	if err := enterView(spec.View, main); err != nil {
		release()
		return nil, nil, err
	}
	// A process gets into a group of version 2 by clone3.
	if err := confine.Thread(spec.Confinement, attributes.UseCgroupFD); err != nil {
		release()
		return nil, nil, err
	}
	return attributes, release, nil
}

func enterView(view *record.View, main *proc.ID) error {
	if main == nil || view == nil {
		return namespace.Enter(view)
	}
	pidfd, err := main.Open()
	if err != nil {
		return fmt.Errorf("the command of the container: %w", err)
	}
	defer unix.Close(pidfd)
	return namespace.Join(pidfd, view)
}

// Credential converts a user to a kernel credential; nil means statusd's own user.
func Credential(user *record.User) *syscall.Credential {
	if user == nil {
		return nil
	}
	return &syscall.Credential{Uid: user.UID, Gid: user.GID, Groups: user.Groups}
}

// explain names the working directory when it is at fault: the kernel's error looks
// the same as for a missing command.
func explain(err error, spec record.Spec) error {
	if info, statErr := os.Stat(spec.Dir); statErr != nil {
		return fmt.Errorf("working directory: %w", statErr)
	} else if !info.IsDir() {
		return fmt.Errorf("working directory %s is not a directory", spec.Dir)
	}
	return err
}

// LookPath finds a command as execvp does, but with the container's PATH and relative
// to the container's working directory.
func LookPath(command, dir string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		return command, nil // the kernel resolves it from the working directory
	}
	found := error(fs.ErrNotExist)
	for _, element := range filepath.SplitList(variable(env, "PATH")) {
		candidate := filepath.Join(element, command)
		if !filepath.IsAbs(candidate) {
			candidate = filepath.Join(dir, candidate)
		}
		info, err := os.Stat(candidate)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			found = fs.ErrPermission
		default:
			return candidate, nil
		}
	}
	if errors.Is(found, fs.ErrPermission) {
		return "", fmt.Errorf("exec: %q: permission denied", command)
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", command)
}

// withTerm names a kind of terminal for a command that has one, as container runtimes do, unless
// the container does.
func withTerm(env []string, terminal bool) []string {
	if !terminal || variable(env, "TERM") != "" {
		return env
	}
	return append(slices.Clone(env), "TERM=xterm")
}

// variable returns the last value of a name, as the program itself would see it.
func variable(env []string, name string) string {
	value := ""
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
