package load

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/text"
)

// Formula is how [Load.Load] is computed.
const Formula = "the largest part of what a node can run out of: busy CPU, used memory, disk, inodes, PIDs and file descriptors, and the share of the last 10 seconds in which some task waited for memory or I/O"

// Load is how much of its resources a node uses.
type Load struct {
	At time.Time `json:"at"`
	// Load is 0 for an idle node and 1 for a node that has exhausted a resource, which Limit names.
	// Formula is the computation in words.
	Load    float64 `json:"load"`
	Limit   string  `json:"limit"`
	Formula string  `json:"formula"`
	// Parts are the candidates for Load, the largest first.
	Parts []LoadPart `json:"parts"`

	CPU    CPULoad    `json:"cpu"`
	Memory MemoryLoad `json:"memory"`
	Disks  []DiskLoad `json:"disks"`
	PIDs   Count      `json:"pids"`
	Files  Count      `json:"files"`
	// Pressure is how long tasks have waited, by resource (cpu, memory, io); empty if the kernel does not
	// report it.
	Pressure map[string]Pressure `json:"pressure,omitempty"`
	Network  []NetworkLoad       `json:"network"`
	// Pods are the pods by control group, the highest CPU usage first.
	Pods []PodLoad `json:"pods"`
	// Problems are the unreadable values.
	Problems []string `json:"problems,omitempty"`
}

// LoadPart is one thing that a node can run out of.
type LoadPart struct {
	Name string  `json:"name"`
	Used float64 `json:"used"` // of 1
	Text string  `json:"text"`
}

// CPULoad is the load of the CPUs. Busy is the share of all CPUs since the previous reading.
type CPULoad struct {
	Cores  int     `json:"cores"`
	Busy   float64 `json:"busy"`
	Load1  float64 `json:"load1"`
	Load5  float64 `json:"load5"`
	Load15 float64 `json:"load15"`
}

// MemoryLoad is in bytes.
type MemoryLoad struct {
	Total     uint64 `json:"total"`
	Available uint64 `json:"available"`
	SwapUsed  uint64 `json:"swapUsed,omitempty"`
}

// DiskLoad is about a file system. Inodes is 0 where it does not count them.
type DiskLoad struct {
	Path       string `json:"path"`
	Total      uint64 `json:"total"`
	Available  uint64 `json:"available"`
	Inodes     uint64 `json:"inodes"`
	InodesFree uint64 `json:"inodesFree"`
	ReadOnly   bool   `json:"readOnly,omitempty"`
}

// Count is a number and its maximum; Max of 0 is unknown.
type Count struct {
	Used uint64 `json:"used"`
	Max  uint64 `json:"max"`
}

// Pressure is the percentage of the last 10 and 60 seconds in which some, or all, tasks waited.
type Pressure struct {
	Some10 float64 `json:"some10"`
	Some60 float64 `json:"some60"`
	Full10 float64 `json:"full10"`
	Full60 float64 `json:"full60"`
}

// NetworkLoad is about an interface that is not virtual. Errors and Drops count since the boot, the rates
// since the reading before.
type NetworkLoad struct {
	Name              string  `json:"name"`
	Errors            uint64  `json:"errors"`
	Drops             uint64  `json:"drops"`
	ErrorsPerSecond   float64 `json:"errorsPerSecond"`
	DropsPerSecond    float64 `json:"dropsPerSecond"`
	ReceivedPerSec    float64 `json:"receivedBytesPerSecond"`
	TransmittedPerSec float64 `json:"transmittedBytesPerSecond"`
}

// PodLoad is the usage of a pod's control group. CPU is in cores since the previous reading, Memory the
// working set in bytes; Throttled is the share of scheduling periods in which it had used up its limit.
type PodLoad struct {
	UID       types.UID `json:"uid"`
	CPU       float64   `json:"cpu"`
	Memory    uint64    `json:"memory"`
	PIDs      uint64    `json:"pids"`
	Throttled float64   `json:"throttled,omitempty"`
	// OOMKills counts the processes that were killed because the pod used too much memory; only version 2
	// of control groups reports it.
	OOMKills uint64 `json:"oomKills,omitempty"`
}

// Summarize computes the parts and the load of a reading.
func (l *Load) Summarize() {
	l.Parts = []LoadPart{}
	l.part("cpu", l.CPU.Busy, "%.0f %% of %d cores", 100*l.CPU.Busy, l.CPU.Cores)
	l.part("memory", used(l.Memory.Available, l.Memory.Total), "%s of %s left", text.Bytes(l.Memory.Available), text.Bytes(l.Memory.Total))
	for _, d := range l.Disks {
		l.part("disk "+d.Path, used(d.Available, d.Total), "%s of %s left", text.Bytes(d.Available), text.Bytes(d.Total))
		l.part("inodes "+d.Path, used(d.InodesFree, d.Inodes), "%d of %d left", d.InodesFree, d.Inodes)
	}
	l.part("pids", ratio(l.PIDs.Used, l.PIDs.Max), "%d of %d", l.PIDs.Used, l.PIDs.Max)
	l.part("files", ratio(l.Files.Used, l.Files.Max), "%d of %d", l.Files.Used, l.Files.Max)
	for _, name := range []string{"memory", "io"} {
		if p, ok := l.Pressure[name]; ok {
			l.part(name+" pressure", p.Some10/100, "some tasks waited %.0f %% of the last 10 s", p.Some10)
		}
	}
	slices.SortStableFunc(l.Parts, func(a, b LoadPart) int { return cmp.Compare(b.Used, a.Used) })
	l.Load, l.Limit, l.Formula = l.Parts[0].Used, l.Parts[0].Name, Formula
}

func (l *Load) part(name string, used float64, format string, args ...any) {
	l.Parts = append(l.Parts, LoadPart{Name: name, Used: min(1, max(0, used)), Text: fmt.Sprintf(format, args...)})
}

// used is the part of total that is not left, 0 if the total is not known.
func used(left, total uint64) float64 { return ratio(total-min(left, total), total) }

func ratio(part, total uint64) float64 {
	if total == 0 {
		return 0
	}
	return float64(part) / float64(total)
}
