package machine

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statusd/statusd/internal/machine/logs"
)

// Config is an operator's configuration of the machine's watch. The default config file of a process documents each
// field.
type Config struct {
	LogFiles map[string]string `yaml:"logFiles"`
	LogRules string            `yaml:"logRules"`

	// What follows the program decides.

	// Units are the systemd units whose journal is read, with their origins. Without journalctl, no journal is read.
	Units map[string]string `yaml:"-"`
	// Disks are paths whose file systems count in the load. Empty: the load is not read.
	Disks []string `yaml:"-"`
	// NoKernelLog: the log of the kernel is not read, neither /dev/kmsg nor, where /dev/kmsg is not readable, the journal.
	NoKernelLog bool `yaml:"-"`
}

// PositionsFile is the file name in the state directory.
const PositionsFile = "log-positions"

// Default reads logs and load of the machine, and writes nothing to the API.
func Default() Config {
	return Config{
		Units:    map[string]string{"kubelet.service": string(logs.KubeletLog), "containerd.service": string(logs.RuntimeLog)},
		LogFiles: map[string]string{}, Disks: []string{"/"},
	}
}

// Validate calls wrong with each mistake: the field and the problem.
func (c *Config) Validate(wrong func(field, format string, args ...any)) {
	for field, list := range map[string]map[string]string{"units": c.Units, "logFiles": c.LogFiles} {
		for name, origin := range list {
			switch logs.Origin(origin) {
			case logs.KubeletLog, logs.RuntimeLog:
			case logs.Kernel, logs.ServiceState:
				if field == "units" {
					wrong(field, "%s is %q: want kubelet or runtime", name, origin)
				}
			default:
				wrong(field, "%s is %q: want kubelet or runtime", name, origin)
			}
			if field == "logFiles" && !filepath.IsAbs(name) {
				wrong(field, "%q: want an absolute path", name)
			}
		}
	}
	if c.LogRules != "" {
		if _, err := readRules(c.LogRules); err != nil {
			wrong("logRules", "%v", err)
		}
	}
	for _, path := range c.Disks {
		if !filepath.IsAbs(path) {
			wrong("disks", "%q: want an absolute path", path)
		}
	}
}

func readRules(file string) ([]logs.Rule, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return logs.ParseRules(file, data)
}

// logs are the logs that there are on this machine.
func (c *Config) logs(hostRoot, stateDir string) (o logs.Options, err error) {
	if c.LogRules != "" {
		if o.Rules, err = readRules(c.LogRules); err != nil {
			return o, fmt.Errorf("host: %w", err)
		}
	}
	o.StateFile = filepath.Join(stateDir, PositionsFile)
	if !c.NoKernelLog && readable("/dev/kmsg") {
		o.Kmsg = "/dev/kmsg"
	}
	if _, err := exec.LookPath("journalctl"); err == nil && readable(filepath.Join(hostRoot, "run/systemd/journal")) {
		o.Units, o.JournalKernel = origins("", c.Units), !c.NoKernelLog && o.Kmsg == ""
		if hostRoot != "" && hostRoot != "/" {
			o.JournalArgs = []string{"--root=" + hostRoot}
		}
	}
	o.Files = origins(hostRoot, c.LogFiles)
	return o, nil
}

// missing are the logs that are not read because they are not readable here.
func (c *Config) missing(o logs.Options) (missing []string) {
	if !c.NoKernelLog && o.Kmsg == "" && !o.JournalKernel {
		missing = append(missing, "kernel")
	}
	if len(c.Units) > 0 && len(o.Units) == 0 {
		missing = append(missing, slices.Sorted(maps.Keys(c.Units))...)
	}
	return missing
}

// origins are the origins of units, or of files below a root.
func origins(root string, list map[string]string) map[string]logs.Origin {
	all := map[string]logs.Origin{}
	for name, origin := range list {
		all[filepath.Join(root, name)] = logs.Origin(strings.TrimSpace(origin))
	}
	return all
}

func readable(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	file.Close()
	return true
}
