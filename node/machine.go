package node

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/statusd/statusd/internal/diskspace"
)

// A Reading is a reading of the machine at one moment.
type Reading struct {
	Addresses     []string // IP addresses, the primary address first
	KernelVersion string
	OSImage       string
	MachineID     string
	SystemUUID    string
	BootID        string

	CPUs            int
	MemoryTotal     uint64 // bytes
	MemoryAvailable uint64
	DiskTotal       uint64 // bytes
	DiskAvailable   uint64
	Inodes          uint64 // 0 where the file system does not count them
	InodesFree      uint64
	PIDs            uint64 // the maximum
	PIDsUsed        uint64
}

// ReadMachine reads the machine that this process runs on; disk is a path on the file system whose
// space is measured. Descriptive fields that are unavailable, as in a container, are left empty; a
// missing value that capacity or conditions need is an error.
func ReadMachine(disk string) (Reading, error) {
	r := Reading{
		Addresses:     machineAddresses(),
		KernelVersion: line("/proc/sys/kernel/osrelease"),
		OSImage:       osImage(),
		MachineID:     line("/etc/machine-id"),
		SystemUUID:    line("/sys/class/dmi/id/product_uuid"),
		BootID:        line("/proc/sys/kernel/random/boot_id"),
		CPUs:          runtime.NumCPU(),
	}
	if r.SystemUUID == "" { // readable for root only, absent on many boards
		r.SystemUUID = r.MachineID
	}
	err := errors.Join(r.readMemory(), r.readDisk(disk), r.readPIDs())
	if err != nil {
		return r, fmt.Errorf("node: read the machine: %w", err)
	}
	return r, nil
}

// line returns the content of a file with one line, or empty if it cannot be read.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}

func (r *Reading) readMemory() error {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return err
	}
	r.MemoryTotal, r.MemoryAvailable, err = parseMeminfo(string(data))
	return err
}

func parseMeminfo(text string) (total, available uint64, err error) {
	values := map[string]uint64{}
	for l := range strings.Lines(text) {
		name, rest, _ := strings.Cut(l, ":")
		number, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && unit == "kB" {
			values[name] = n << 10
		}
	}
	total, available = values["MemTotal"], values["MemAvailable"]
	if total == 0 || values["MemAvailable"] > total {
		return 0, 0, fmt.Errorf("/proc/meminfo: MemTotal %d, MemAvailable %d make no sense", total, available)
	}
	return total, available, nil
}

func (r *Reading) readDisk(path string) error {
	space, err := diskspace.Of(path)
	if err != nil {
		return err
	}
	r.DiskTotal, r.DiskAvailable = space.Total, space.Available
	r.Inodes, r.InodesFree = space.Inodes, space.InodesFree
	return nil
}

func (r *Reading) readPIDs() error {
	for _, path := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		most, err := strconv.ParseUint(line(path), 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if r.PIDs == 0 || most < r.PIDs {
			r.PIDs = most
		}
	}
	used, err := parseLoadavg(line("/proc/loadavg"))
	r.PIDsUsed = used
	return err
}

// parseLoadavg returns the number of tasks, the second part of the fourth field.
func parseLoadavg(text string) (uint64, error) {
	if fields := strings.Fields(text); len(fields) >= 4 {
		if _, total, ok := strings.Cut(fields[3], "/"); ok {
			return strconv.ParseUint(total, 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/loadavg: no number of tasks in %q", text)
}

func osImage() string {
	for _, path := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if data, err := os.ReadFile(path); err == nil {
			return parseOSRelease(data)
		}
	}
	return ""
}

func parseOSRelease(data []byte) string {
	name := ""
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), "=")
		switch value = strings.Trim(value, `"'`); key {
		case "PRETTY_NAME":
			return value
		case "NAME":
			name = value
		}
	}
	return name
}

// machineAddresses are the addresses of the interface that the default route uses, or
// else of the first one that has any; IPv4 before IPv6, at most one of each.
func machineAddresses() []string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	preferred := defaultRoute(line("/proc/net/route"))
	var fallback []string
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		found := globalAddresses(addresses)
		if i.Name == preferred && len(found) > 0 {
			return found
		}
		if fallback == nil {
			fallback = found
		}
	}
	return fallback
}

func globalAddresses(addresses []net.Addr) []string {
	var v4, v6 string
	for _, a := range addresses {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			v4 = cmp.Or(v4, n.IP.String())
		} else {
			v6 = cmp.Or(v6, n.IP.String())
		}
	}
	var found []string
	for _, a := range []string{v4, v6} {
		if a != "" {
			found = append(found, a)
		}
	}
	return found
}

// defaultRoute is the interface of the first route to everywhere.
func defaultRoute(table string) string {
	for l := range strings.Lines(table) {
		if fields := strings.Fields(l); len(fields) > 7 && fields[1] == "00000000" && fields[7] == "00000000" {
			return fields[0]
		}
	}
	return ""
}
