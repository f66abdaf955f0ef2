package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/version"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/nodeclient"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/internal/unixsocket"
)

// oldestKernel is the oldest Linux for a node, and volumeKernel the oldest one that can mount volumes for pods.
var (
	oldestKernel = version.MustParseGeneric("5.10")
	volumeKernel = version.MustParseGeneric("5.12")
)

func (e *examination) running() {
	conn, err := e.dial(e.Socket)
	if err != nil {
		e.add("process", Skipped, "no statusd answers on "+e.Socket, "")
		return
	}
	conn.Close()
	e.runs = true
	e.add("process", OK, "a statusd answers on "+e.Socket, "")
}

func (e *examination) dial(socket string) (net.Conn, error) {
	if socket == "" {
		return nil, fs.ErrNotExist
	}
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	return unixsocket.Dial(ctx, socket)
}

func (e *examination) kernel() {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		e.add("kernel", Skipped, err.Error(), "")
		return
	}
	e.judgeKernel(unix.ByteSliceToString(name.Release[:]))
}

func (e *examination) judgeKernel(release string) {
	found := "Linux " + release
	v, err := version.ParseGeneric(release)
	switch {
	case err != nil:
		e.add("kernel", Warning, found+": the version cannot be read", "compare it with docs/use/node.md")
	case e.Root && v.LessThan(oldestKernel):
		e.add("kernel", Failed, found, "use Linux "+oldestKernel.String()+" or newer: statusd opens files beneath directories with openat2")
	case e.Root && v.LessThan(volumeKernel):
		e.add("kernel", Warning, found, "use Linux "+volumeKernel.String()+" or newer: pods with mounted volumes need mount_setattr")
	default:
		e.add("kernel", OK, found, "")
	}
}

func (e *examination) user() {
	switch uid := os.Geteuid(); {
	case uid == 0:
		e.add("user", OK, "root", "")
	case e.Root:
		e.add("user", Warning, fmt.Sprintf("user %d: pods cannot have limits, volumes in memory or users of their own", uid), "run statusd as root")
	default:
		e.add("user", Warning, fmt.Sprintf("user %d: the kubelet's files and the runtime's socket may be closed to it", uid), "run statusd observe as root")
	}
}

const cgroupRoot = "/sys/fs/cgroup"

func (e *examination) controlGroups() {
	if !e.Cgroups {
		return
	}
	controllers, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		e.add("control groups", Warning, "no unified hierarchy (cgroup v2) in "+cgroupRoot, "boot with systemd.unified_cgroup_hierarchy=1: memory events and io limits need cgroup v2")
		return
	}
	if err != nil {
		e.add("control groups", Failed, err.Error(), "mount cgroup2 on "+cgroupRoot)
		return
	}
	var missing []string
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if !strings.Contains(" "+string(bytes.TrimSpace(controllers))+" ", " "+controller+" ") {
			missing = append(missing, controller)
		}
	}
	if len(missing) > 0 {
		e.add("control groups", Warning, "cgroup v2 without the controllers "+strings.Join(missing, ", "), "enable the controllers, for example with Delegate=yes in the unit")
		return
	}
	e.add("control groups", OK, "cgroup v2 with cpu, memory and pids", "")
}

// What the state directory should have: room for journal and history, and a disk that takes writes in time.
const (
	enoughSpace = 100 << 20
	slowSync    = 200 * time.Millisecond
)

func (e *examination) state() {
	check := "state directory"
	dir := e.StateDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Rights alone do not tell: root may write to /proc, and no directory can be created there.
		probe, err := os.MkdirTemp(existing(dir), "doctor-")
		if err == nil {
			err = os.Remove(probe)
		}
		if err != nil {
			e.add(check, Failed, e.StateDir+" does not exist and cannot be created: "+err.Error(), "create the directory for the user of statusd, or set stateDir")
			return
		}
		e.add(check, OK, e.StateDir+" does not exist yet; it can be created", "")
		return
	case err != nil:
		e.add(check, Failed, err.Error(), "make the directory readable, or set stateDir")
		return
	case !info.IsDir():
		e.add(check, Failed, dir+" is not a directory", "remove the file, or set stateDir")
		return
	}
	took, err := syncTime(dir)
	if err != nil {
		e.add(check, Failed, err.Error(), "make room on the disk, mount it writable, or set stateDir")
		return
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		e.add(check, Failed, err.Error(), "set stateDir to a directory of a local disk")
		return
	}
	free := int64(disk.Bavail) * disk.Frsize
	found := fmt.Sprintf("%s: %s free, a synced write took %s", dir, text.Bytes(uint64(max(free, 0))), text.Took(took))
	switch {
	case free < enoughSpace:
		e.add(check, Warning, found, "make room: less than 100Mi is left for journal and history")
	case took > slowSync:
		e.add(check, Warning, found, "use a faster disk: the ends of pods wait for synced writes")
	default:
		e.add(check, OK, found, "")
	}
}

// existing is the nearest directory above a path that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// syncTime writes and syncs a block in a directory and returns how long that took.
func syncTime(dir string) (took time.Duration, err error) {
	file, err := os.CreateTemp(dir, "doctor-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	begin := time.Now()
	if _, err := file.Write(make([]byte, 4096)); err != nil {
		return 0, err
	}
	err = file.Sync()
	return time.Since(begin), err
}

func (e *examination) ports() {
	for _, address := range e.Addresses {
		if address == "" || strings.HasSuffix(address, ":0") {
			continue
		}
		check := "address " + address
		listener, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			listener.Close()
			e.add(check, OK, "free", "")
		case e.runs && errors.Is(err, syscall.EADDRINUSE):
			e.add(check, OK, "in use while statusd runs", "")
		default:
			e.add(check, Failed, err.Error(), "stop the process that listens there (ss -ltnp), or set another address")
		}
	}
}

func (e *examination) unit() {
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "show", "-p", "LoadState", "-p", "ActiveState", e.Unit).Output()
	if err != nil {
		e.add("systemd", Skipped, "systemctl does not answer: this machine has no systemd, or it refuses this user", "")
		return
	}
	e.judgeUnit(string(out))
}

// judgeUnit reads what systemctl show has printed.
func (e *examination) judgeUnit(shown string) {
	values := map[string]string{}
	for line := range strings.Lines(shown) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = value
	}
	found := fmt.Sprintf("%s is %s, %s", e.Unit, values["LoadState"], values["ActiveState"])
	switch {
	case values["LoadState"] == "not-found":
		e.add("systemd", Skipped, e.Unit+" is not installed", "")
	case values["ActiveState"] == "failed":
		e.add("systemd", Failed, found, "read journalctl -u "+e.Unit)
	case values["LoadState"] != "loaded":
		e.add("systemd", Failed, found, "read systemctl status "+e.Unit)
	default:
		e.add("systemd", OK, found, "")
	}
}

func (e *examination) runtime() {
	if e.RuntimeEndpoint == "" {
		return
	}
	const check, do = "container runtime", "start the container runtime with its CRI plugin, or set the endpoint of its socket"
	conn, err := nodeclient.Runtime(e.RuntimeEndpoint)
	if err != nil {
		e.add(check, Failed, err.Error(), do)
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	answer, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		e.add(check, Failed, e.RuntimeEndpoint+": "+err.Error(), do)
		return
	}
	e.add(check, OK, fmt.Sprintf("%s %s on %s", answer.RuntimeName, answer.RuntimeVersion, e.RuntimeEndpoint), "")
}
