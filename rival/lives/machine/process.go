package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a program that runs until it is killed.
type process struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// start runs a program; what it says is appended to DIR/NAME.log.
func (m *Machine) start(name, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(m.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+m.logind.address)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{cmd: cmd, log: log.Name(), exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait()
	}()
	return p, nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// await tries until it succeeds; an error says what is not so yet.
func await(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stat is what is needed of /proc/PID/stat.
type stat struct {
	pid, parent int
}

func processes() (map[int]stat, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	all := make(map[int]stat)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name, which may contain anything) state ppid ...
		_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
		words := strings.Fields(rest)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(words[1])
		all[pid] = stat{pid, parent}
	}
	return all, err
}

// killAll ends all processes of the machine at one instant, save the first one, this one, and
// those in keep with their children. They are stopped first, so that none sees the end of another.
func killAll(keep ...int) error {
	var stopped []int
	for {
		all, err := processes()
		if err != nil {
			return err
		}
		fresh := slices.DeleteFunc(victims(all, keep), func(pid int) bool { return slices.Contains(stopped, pid) })
		if len(fresh) == 0 {
			break // a process that is stopped starts no others
		}
		for _, pid := range fresh {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		stopped = append(stopped, fresh...)
	}
	for _, pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return nil
}

func victims(all map[int]stat, keep []int) []int {
	var pids []int
	for pid := range all {
		kept := pid == 1 || pid == os.Getpid()
		for at := pid; at > 1 && !kept; at = all[at].parent {
			kept = slices.Contains(keep, at)
		}
		if !kept {
			pids = append(pids, pid)
		}
	}
	return pids
}
