package load

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const uid = "5bb44d6b-3c05-4d14-a27a-64ac2e8b1b0c"

// machine is a directory that looks like the root of a host.
type machine struct {
	t    *testing.T
	root string
	now  time.Time
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func newMachine(t *testing.T) (*machine, *Reader) {
	m := &machine{t: t, root: t.TempDir(), now: time.Unix(1000, 0)}
	m.cpu(100, 900)
	m.write("proc/loadavg", "0.50 0.40 0.30 2/345 6789\n")
	m.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 250 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n")
	m.write("proc/sys/kernel/pid_max", "4194304\n")
	m.write("proc/sys/kernel/threads-max", "1000\n")
	m.write("proc/sys/fs/file-nr", "1024\t0\t4096\n")
	m.write("proc/pressure/memory", "some avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.50 avg60=0.60 avg300=0.70 total=8\n")
	m.network(1000, 3)
	reader, err := New(Options{HostRoot: m.root, now: func() time.Time { return m.now }})
	if err != nil {
		t.Fatal(err)
	}
	// Of the disks of this machine only the device counts: how full they are is not the test's to say.
	reader.disk = func(path string) (DiskLoad, uint64, error) {
		_, device, err := disk(path)
		return DiskLoad{Total: 1000, Available: 600, Inodes: 100, InodesFree: 70}, device, err
	}
	return m, reader
}

func (m *machine) cpu(busy, idle int) {
	m.write("proc/stat", fmt.Sprintf("cpu  %d 0 0 %d 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\nbtime 1\n", busy, idle))
}

func (m *machine) network(bytes, errors int) {
	line := func(name string) string {
		return fmt.Sprintf("%s: %d 0 %d 1 0 0 0 0 0 0 0 2 0 0 0 0\n", name, bytes, errors)
	}
	m.write("proc/1/net/dev", "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"+
		line("lo")+line("eth0")+line("veth12"))
}

func TestAMachineIsRead(t *testing.T) {
	m, reader := newMachine(t)
	first := reader.Read()
	if first.CPU.Busy != 0 || first.Network[0].ErrorsPerSecond != 0 {
		t.Errorf("the first reading has rates: %+v", first)
	}
	m.now = m.now.Add(10 * time.Second)
	m.cpu(1000, 900) // busy all the time: the disk is that of the machine that tests, which may be nearly full
	m.network(2000, 23)
	l := reader.Read()
	if len(l.Problems) != 0 {
		t.Errorf("problems: %q", l.Problems)
	}
	for _, tt := range []struct {
		what      string
		got, want any
	}{
		{"cores", l.CPU.Cores, 2},
		{"busy", math.Round(100 * l.CPU.Busy), 100.0},
		{"load", l.CPU.Load1, 0.5},
		{"memory", l.Memory, MemoryLoad{Total: 1000 << 10, Available: 250 << 10, SwapUsed: 40 << 10}},
		{"PIDs", l.PIDs, Count{Used: 345, Max: 1000}},
		{"files", l.Files, Count{Used: 1024, Max: 4096}},
		{"pressure", l.Pressure["memory"], Pressure{Some10: 1, Some60: 2, Full10: 0.5, Full60: 0.6}},
		{"kinds of pressure", len(l.Pressure), 1},
		{"interfaces", len(l.Network), 1},
		{"network", l.Network[0], NetworkLoad{Name: "eth0", Errors: 23, Drops: 3, ErrorsPerSecond: 2, ReceivedPerSec: 100}},
		{"disks", len(l.Disks), 1},
		{"disk", l.Disks[0], DiskLoad{Path: "/", Total: 1000, Available: 600, Inodes: 100, InodesFree: 70}},
		{"limit", l.Limit, "cpu"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.what, tt.got, tt.want)
		}
	}

	// A clock that was set back, and counters that have begun again.
	m.now = m.now.Add(-time.Hour)
	m.cpu(1, 1)
	m.network(1, 1)
	l = reader.Read()
	if l.CPU.Busy != 0 || l.Network[0].ErrorsPerSecond != 0 {
		t.Errorf("after the clock was set back: %+v", l)
	}
}

// The numbers of a disk are those of its file system.
func TestADiskIsRead(t *testing.T) {
	d, _, err := disk(t.TempDir())
	if err != nil || d.Total == 0 || d.Available > d.Total || d.InodesFree > d.Inodes {
		t.Errorf("disk: %+v, %v", d, err)
	}
}

// What cannot be read is named, and does not keep the rest from being read.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	m, reader := newMachine(t)
	for _, name := range []string{"proc/meminfo", "proc/sys/fs/file-nr", "proc/1/net/dev"} {
		if err := os.Remove(filepath.Join(m.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.write("proc/sys/fs/file-nr", "nonsense")
	l := reader.Read()
	all := strings.Join(l.Problems, "\n")
	for _, want := range []string{"memory: ", "file descriptors: ", "network: "} {
		if !strings.Contains(all, want) {
			t.Errorf("the problems do not name %s: %s", want, all)
		}
	}
	if l.CPU.Cores != 2 || l.PIDs.Used != 345 {
		t.Errorf("the rest was not read: %+v", l)
	}
}

// Both versions of control groups, and both drivers.
func TestPodsAreReadByTheirControlGroups(t *testing.T) {
	systemd := "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/"
	plain := "kubepods/burstable/pod" + uid + "/"
	for _, tt := range []struct {
		name  string
		group string
		files map[string]string // %d is the CPU time in ms
	}{
		{"v2 systemd", systemd, map[string]string{
			"cgroup.controllers": "cpu memory\n", "G/cpu.stat": "usage_usec %d000\nnr_periods 10\nnr_throttled 4\n",
			"G/memory.current": "5000\n", "G/memory.stat": "anon 1\ninactive_file 2000\n", "G/memory.events": "oom 3\noom_kill 2\n", "G/pids.current": "7\n",
		}},
		{"v1 cgroupfs", plain, map[string]string{
			"cpuacct/G/cpuacct.usage": "%d000000\n", "cpu/G/cpu.stat": "nr_periods 10\nnr_throttled 4\n",
			"memory/G/memory.usage_in_bytes": "5000\n", "memory/G/memory.stat": "inactive_file 1\ntotal_inactive_file 2000\n", "pids/G/pids.current": "7\n",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, reader := newMachine(t)
			set := func(cpu int) {
				for name, text := range tt.files {
					if strings.Contains(text, "%d") {
						text = fmt.Sprintf(text, cpu)
					}
					m.write("sys/fs/cgroup/"+strings.Replace(name, "G/", tt.group, 1), text)
				}
			}
			set(1000)
			m.write("sys/fs/cgroup/memory/system.slice/x.service/memory.stat", "")
			reader.Read()
			m.now = m.now.Add(2 * time.Second)
			set(2000)
			l := reader.Read()
			want := PodLoad{UID: uid, CPU: 0.5, Memory: 3000, PIDs: 7, Throttled: 0.4}
			if strings.HasPrefix(tt.name, "v2") {
				want.OOMKills = 2
			}
			if len(l.Pods) != 1 || l.Pods[0] != want {
				t.Errorf("pods: %+v, want %+v", l.Pods, want)
			}
			if err := os.RemoveAll(filepath.Join(m.root, "sys")); err != nil {
				t.Fatal(err)
			}
			if l := reader.Read(); len(l.Pods) != 0 || len(l.Problems) != 0 {
				t.Errorf("without control groups there are %+v, problems %q", l.Pods, l.Problems)
			}
		})
	}
}
