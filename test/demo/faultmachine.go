package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bootIDFile = "/proc/sys/kernel/random/boot_id"
	uptimeFile = "/proc/uptime"
	// stateSize is small, so that the disk fills up at once.
	stateSize = "size=96m,mode=711"
	// containerVariable is in the environment of each process of a container.
	containerVariable = "STATUSD_CONTAINER_ID="
	// runVariable distinguishes the containers of this run from others on the machine.
	runVariable = "FAULTS_RUN="
	link        = "faults0"
)

// namespaces gives this process mounts and a network of its own, and starts it again there: what
// the faults do to them is seen by no other process, and ends with this one.
func namespaces() error {
	if os.Getenv("STATUSD_FAULTS_INSIDE") != "" {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("faults needs root: it mounts a small file system and changes addresses, in namespaces of its own")
	}
	goruntime.LockOSThread() // a namespace is a thread's, until exec makes it the process's
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("faults needs namespaces of its own: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, append(os.Environ(), "STATUSD_FAULTS_INSIDE=1"))
}

// machine is what the faults happen to: a disk, a boot ID, an address, and processes.
type machine struct {
	run     string // distinguishes its containers
	state   string // a file system of its own
	cgroup  string
	boot    string // a file in the place of the kernel's
	uptime  string // another one
	bootID  string
	address string
	net     byte // the last part of the address
}

func newMachine(dir string) (*machine, error) {
	m := &machine{run: filepath.Base(dir), state: filepath.Join(dir, "statusd"), boot: filepath.Join(dir, "boot_id"), uptime: filepath.Join(dir, "uptime")}
	m.cgroup = "/" + m.run
	if err := os.Mkdir(m.state, 0o711); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", m.state, "tmpfs", 0, stateSize); err != nil {
		return nil, fmt.Errorf("mount a small file system: %w", err)
	}
	if err := m.newBoot(); err != nil {
		return nil, err
	}
	if err := unix.Mount(m.boot, bootIDFile, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("put a boot ID in the place of the kernel's: %w", err)
	}
	if err := unix.Mount(m.uptime, uptimeFile, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("put an uptime in the place of the kernel's: %w", err)
	}
	for _, command := range []string{"link set lo up", "link add " + link + " type veth peer name " + link + "p", "link set " + link + " up"} {
		if err := ip(command); err != nil {
			return nil, err
		}
	}
	return m, m.newAddress()
}

// close undoes what would otherwise keep the directory from being removed.
func (m *machine) close() error {
	groups, err := filepath.Glob("/sys/fs/cgroup/*" + m.cgroup)
	for _, group := range append(groups, "/sys/fs/cgroup"+m.cgroup) {
		_ = os.Remove(group) // an empty one; leaveNothing reports others
	}
	return errors.Join(err, unix.Unmount(bootIDFile, unix.MNT_DETACH), unix.Unmount(uptimeFile, unix.MNT_DETACH), unix.Unmount(m.state, unix.MNT_DETACH))
}

func ip(command string) error {
	if output, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, output)
	}
	return nil
}

func (m *machine) newBoot() error {
	var b [16]byte
	_, _ = rand.Read(b[:])
	m.bootID = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	// In place: the mounts are of these very files. The machine has started right now: a lease that was renewed before that is of the boot before.
	return errors.Join(os.WriteFile(m.boot, []byte(m.bootID+"\n"), 0o444), os.WriteFile(m.uptime, []byte("0.00 0.00\n"), 0o444))
}

// newAddress replaces the address, as another lease of DHCP does.
func (m *machine) newAddress() error {
	m.net = m.net%250 + 1
	next := fmt.Sprintf("198.51.100.%d", m.net)
	if err := ip("addr add " + next + "/24 dev " + link); err != nil {
		return err
	}
	old := m.address
	m.address = next
	if old == "" {
		return nil
	}
	// The first address is the primary one: deleting it deletes the later ones, which are then added
	// again.
	if err := ip("addr flush dev " + link); err != nil {
		return err
	}
	return ip("addr add " + next + "/24 dev " + link)
}

func (m *machine) ballast() string { return filepath.Join(m.state, "ballast") }

// fill leaves no byte free.
func (m *machine) fill() error {
	f, err := os.Create(m.ballast())
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, unix.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) free() error { return os.Remove(m.ballast()) }

// freeze makes every file read-only that is opened from now on. Open files stay writable: the
// kernel cannot revoke that from outside of the file system.
func (m *machine) freeze() error {
	if err := unix.Mount(m.state, m.state, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	// It is busy while a file is open for writing that was opened since the mount.
	var err error
	for range 200 {
		if err = unix.Mount("", m.state, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

func (m *machine) thaw() error {
	// What was opened by way of it can be written, too, from now on.
	if err := unix.Mount("", m.state, "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Unmount(m.state, unix.MNT_DETACH)
}

// member is one of the node's: of a container, or, without one, a shim.
type member struct {
	pid       int
	container string
}

// processes are the shims and the processes of containers that have not ended.
func (m *machine) processes() ([]member, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []member
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		p, ours, err := m.identify(pid)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if err == nil && ours {
			found = append(found, p)
		}
	}
	return found, nil
}

func (m *machine) identify(pid int) (member, bool, error) {
	p := member{pid: pid}
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	// A process that has ended has neither.
	environment, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return p, false, err
	}
	ours := false
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if id, ok := strings.CutPrefix(string(variable), containerVariable); ok {
			p.container = id
		}
		ours = ours || string(variable) == runVariable+m.run
	}
	if ours && p.container != "" {
		return p, true, nil
	}
	return member{pid: pid}, worksIn(pid, filepath.Join(m.state, "runtime")), nil
}

// living counts the processes of each container.
func (m *machine) living() (map[string]int, error) {
	processes, err := m.processes()
	living := map[string]int{}
	for _, p := range processes {
		if p.container != "" {
			living[p.container]++
		}
	}
	return living, err
}
