package report

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Machine is where, when and with what a run took place. It names no host.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	MemoryGiB  int    `json:"memory_gib"`
	OS         string `json:"os"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
	Commit     string `json:"commit"`
	Date       string `json:"date"`
	Rounds     int    `json:"rounds"`
}

// ThisMachine describes the machine that this process runs on. Undetectable values are unknown.
func ThisMachine(rounds int) Machine {
	return Machine{
		CPU:        valueIn("/proc/cpuinfo", "model name"),
		Cores:      runtime.NumCPU(),
		MemoryGiB:  memoryGiB(),
		OS:         kernel(),
		Go:         runtime.Version(),
		Kubernetes: moduleVersion("k8s.io/kubernetes"),
		Commit:     commit(),
		Date:       time.Now().UTC().Format(time.DateOnly),
		Rounds:     rounds,
	}
}

const unknown = "unknown"

// valueIn finds the first "key : value" of a file under /proc.
func valueIn(path, key string) string {
	file, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func memoryGiB() int {
	kib, err := strconv.Atoi(strings.TrimSuffix(valueIn("/proc/meminfo", "MemTotal"), " kB"))
	if err != nil {
		return 0
	}
	return (kib + 1<<19) >> 20
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS + "/" + runtime.GOARCH
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-") // and not whose build it is
	return runtime.GOOS + "/" + runtime.GOARCH + ", kernel " + version
}

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return unknown
}

func commit() string {
	output, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(output))
}
