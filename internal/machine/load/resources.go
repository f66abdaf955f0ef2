package load

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/diskspace"
)

// Options configure the paths of the machine.
type Options struct {
	// HostRoot is where the root of the host is mounted; / if empty. Proc and Cgroups are below it: proc and
	// sys/fs/cgroup if empty.
	HostRoot, Proc, Cgroups string
	// Disks are paths on the host whose file systems are measured; / if empty. A path on the same file system
	// as an earlier path is left out.
	Disks []string

	now func() time.Time
}

// Reader reads a machine. Its methods may be called from any goroutine.
type Reader struct {
	o    Options
	fs   procfs.FS
	disk func(path string) (DiskLoad, uint64, error)

	mu     sync.Mutex // guards before
	before reading
}

// reading is what rates are computed from.
type reading struct {
	at         time.Time
	busy, idle float64
	network    map[string]procfs.NetDevLine
	cpu        map[types.UID]uint64 // nanoseconds
}

// New makes a reader.
func New(o Options) (*Reader, error) {
	o.HostRoot = cmp.Or(o.HostRoot, "/")
	o.Proc = cmp.Or(o.Proc, filepath.Join(o.HostRoot, "proc"))
	o.Cgroups = cmp.Or(o.Cgroups, filepath.Join(o.HostRoot, "sys/fs/cgroup"))
	if len(o.Disks) == 0 {
		o.Disks = []string{"/"}
	}
	if o.now == nil {
		o.now = time.Now
	}
	fs, err := procfs.NewFS(o.Proc)
	if err != nil {
		return nil, fmt.Errorf("resources: %w", err)
	}
	return &Reader{o: o, fs: fs, disk: disk}, nil
}

// Read reads the machine. Rates are since the call before; the first has none.
func (r *Reader) Read() Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := Load{At: r.o.now(), Disks: []DiskLoad{}, Network: []NetworkLoad{}, Pods: []PodLoad{}}
	next := reading{at: l.At}
	seconds := l.At.Sub(r.before.at).Seconds()
	if r.before.at.IsZero() || seconds <= 0 {
		seconds = 0 // no rates
	}
	note := func(what string, err error) {
		if err != nil {
			l.Problems = append(l.Problems, what+": "+err.Error())
		}
	}
	note("CPU", r.readCPU(&l, &next))
	note("memory", r.readMemory(&l))
	note("PIDs", r.readPIDs(&l))
	note("file descriptors", r.readFiles(&l))
	note("network", r.readNetwork(&l, &next, seconds))
	r.readPressure(&l)
	r.readDisks(&l, note)
	note("control groups", r.readPods(&l, &next, seconds))
	l.Summarize()
	r.before = next
	return l
}

func (r *Reader) readCPU(l *Load, next *reading) error {
	stat, err := r.fs.Stat()
	if err != nil {
		return err
	}
	l.CPU.Cores = len(stat.CPU)
	t := stat.CPUTotal // user and nice have the time of guests in them
	next.busy, next.idle = t.User+t.Nice+t.System+t.IRQ+t.SoftIRQ+t.Steal, t.Idle+t.Iowait
	busy, idle := next.busy-r.before.busy, next.idle-r.before.idle
	if !r.before.at.IsZero() && busy >= 0 && busy+idle > 0 {
		l.CPU.Busy = min(1, busy/(busy+max(0, idle)))
	}
	avg, err := r.fs.LoadAvg()
	if err != nil {
		return err
	}
	l.CPU.Load1, l.CPU.Load5, l.CPU.Load15 = avg.Load1, avg.Load5, avg.Load15
	return nil
}

func (r *Reader) readMemory(l *Load) error {
	info, err := r.fs.Meminfo()
	if err != nil {
		return err
	}
	l.Memory.Total, l.Memory.Available = value(info.MemTotalBytes), value(info.MemAvailableBytes)
	l.Memory.SwapUsed = value(info.SwapTotalBytes) - min(value(info.SwapFreeBytes), value(info.SwapTotalBytes))
	return nil
}

func value(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

// readPIDs counts tasks, threads included, as the kernel's limit does.
func (r *Reader) readPIDs(l *Load) error {
	data, err := os.ReadFile(filepath.Join(r.o.Proc, "loadavg"))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(data))
	if len(fields) < 4 {
		return fmt.Errorf("loadavg is %q", data)
	}
	_, total, _ := strings.Cut(fields[3], "/")
	if l.PIDs.Used, err = strconv.ParseUint(total, 10, 64); err != nil {
		return err
	}
	limit, err := r.number("sys/kernel/pid_max")
	if threads, err := r.number("sys/kernel/threads-max"); err == nil {
		limit = min(cmp.Or(limit, threads), threads)
	}
	l.PIDs.Max = limit
	return err
}

func (r *Reader) number(name string) (uint64, error) {
	data, err := os.ReadFile(filepath.Join(r.o.Proc, name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
}

func (r *Reader) readFiles(l *Load) error {
	data, err := os.ReadFile(filepath.Join(r.o.Proc, "sys/fs/file-nr"))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(data))
	if len(fields) != 3 {
		return fmt.Errorf("file-nr is %q", data)
	}
	if l.Files.Used, err = strconv.ParseUint(fields[0], 10, 64); err != nil {
		return err
	}
	l.Files.Max, err = strconv.ParseUint(fields[2], 10, 64)
	return err
}

// virtual are the beginnings of the names of interfaces that pods have, or that lead nowhere.
var virtual = []string{"lo", "veth", "cali", "cilium", "lxc", "docker", "br-", "cni", "flannel", "kube-", "nodelocaldns", "dummy", "tun", "tap", "ifb", "sit"}

func (r *Reader) readNetwork(l *Load, next *reading, seconds float64) error {
	// The interfaces of the first process are those of the host.
	first, err := r.fs.Proc(1)
	if err != nil {
		return err
	}
	all, err := first.NetDev()
	if err != nil {
		return err
	}
	next.network = all
	for name, n := range all {
		if slices.ContainsFunc(virtual, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		load := NetworkLoad{Name: name, Errors: n.RxErrors + n.TxErrors, Drops: n.RxDropped + n.TxDropped}
		if old, known := r.before.network[name]; known && seconds > 0 {
			load.ErrorsPerSecond = rate(old.RxErrors+old.TxErrors, load.Errors, seconds)
			load.DropsPerSecond = rate(old.RxDropped+old.TxDropped, load.Drops, seconds)
			load.ReceivedPerSec = rate(old.RxBytes, n.RxBytes, seconds)
			load.TransmittedPerSec = rate(old.TxBytes, n.TxBytes, seconds)
		}
		l.Network = append(l.Network, load)
	}
	slices.SortFunc(l.Network, func(a, b NetworkLoad) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// rate is 0 if a counter has begun again.
func rate(old, new uint64, seconds float64) float64 {
	if new < old || seconds <= 0 {
		return 0
	}
	return float64(new-old) / seconds
}

// readPressure leaves out what the kernel does not say: it may be built without it.
func (r *Reader) readPressure(l *Load) {
	for _, name := range []string{"cpu", "memory", "io"} {
		stats, err := r.fs.PSIStatsForResource(name)
		if err != nil || stats.Some == nil {
			continue
		}
		if l.Pressure == nil {
			l.Pressure = map[string]Pressure{}
		}
		p := Pressure{Some10: stats.Some.Avg10, Some60: stats.Some.Avg60}
		if stats.Full != nil {
			p.Full10, p.Full60 = stats.Full.Avg10, stats.Full.Avg60
		}
		l.Pressure[name] = p
	}
}

func (r *Reader) readDisks(l *Load, note func(string, error)) {
	seen := map[uint64]bool{}
	for _, path := range r.o.Disks {
		d, device, err := r.disk(filepath.Join(r.o.HostRoot, path))
		d.Path = path
		note("disk "+path, err)
		if err == nil && !seen[device] {
			seen[device] = true
			l.Disks = append(l.Disks, d)
		}
	}
}

func disk(path string) (d DiskLoad, device uint64, err error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return d, 0, err
	}
	s, err := diskspace.Of(path)
	return DiskLoad{Total: s.Total, Available: s.Available, Inodes: s.Inodes, InodesFree: s.InodesFree, ReadOnly: s.ReadOnly}, uint64(stat.Dev), err
}
