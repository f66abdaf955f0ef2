package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/test/stock"
)

// start runs a program; its output is appended to DIR/NAME.log.
func (m *Machine) start(name, program string, args ...string) (*stock.Process, error) {
	return stock.Launch(m.dir, []string{"DBUS_SYSTEM_BUS_ADDRESS=" + m.logind.address}, name, program, args...)
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
