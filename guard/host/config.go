package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/statusd/statusd/guard/monitor"
)

// Config is what an operator decides about it. [Config.Settings] says of each field what it is for.
type Config struct {
	KernelLog      string            `yaml:"kernelLog"`
	Units          map[string]string `yaml:"units"`
	LogFiles       map[string]string `yaml:"logFiles"`
	LogRules       string            `yaml:"logRules"`
	Events         bool              `yaml:"events"`
	NodeConditions bool              `yaml:"nodeConditions"`
	LoadInterval   time.Duration     `yaml:"loadInterval"`
	Disks          []string          `yaml:"disks"`
}

// PositionsFile is what lies in the state directory.
const PositionsFile = "log-positions"

// Auto is the setting of a log that is read where there is one.
const Auto = "auto"

// Default reads what the machine has, and writes nothing to the API.
func Default() Config {
	return Config{
		KernelLog: Auto, Units: map[string]string{"kubelet.service": string(monitor.KubeletLog), "containerd.service": string(monitor.RuntimeLog)},
		LogFiles: map[string]string{}, LoadInterval: 10 * time.Second, Disks: []string{"/"},
	}
}

// Setting is one field: its name in the section of the file, where its value is, and what it is for.
type Setting struct {
	Name  string
	Value any
	Doc   string
}

// Settings are all fields.
func (c *Config) Settings() []Setting {
	return []Setting{
		{"kernelLog", &c.KernelLog, "Log of the kernel: its device, journal to read it from the journal, auto for /dev/kmsg where it can be read. Empty: it is not read."},
		{"units", &c.Units, "Units of systemd whose journal is read, with who they are: kubelet or runtime. Where there is no journalctl, none is read."},
		{"logFiles", &c.LogFiles, "Log files, with who writes them: kernel, kubelet, runtime or systemd."},
		{"logRules", &c.LogRules, "File of kind LogRules with what lines mean. Empty: the rules that statusd brings."},
		{"events", &c.Events, "Report what is found in the logs as Events of the pod or the Node."},
		{"nodeConditions", &c.NodeConditions, "Keep a condition of the Node for each problem that lasts, such as KernelDeadlock and ReadonlyFilesystem."},
		{"loadInterval", &c.LoadInterval, "How often CPU, memory, disks, PIDs, file descriptors, pressure and network errors are read. 0: not at all."},
		{"disks", &c.Disks, "Paths whose file systems count in the load of the node."},
	}
}

// Validate calls wrong with each mistake: the field and what is wrong with it.
func (c *Config) Validate(wrong func(field, format string, args ...any)) {
	for field, list := range map[string]map[string]string{"units": c.Units, "logFiles": c.LogFiles} {
		for name, origin := range list {
			switch monitor.Origin(origin) {
			case monitor.KubeletLog, monitor.RuntimeLog:
			case monitor.Kernel, monitor.ServiceState:
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
	if c.LoadInterval < 0 || c.LoadInterval > 0 && c.LoadInterval < time.Second {
		wrong("loadInterval", "%v: want 0 or at least 1s", c.LoadInterval)
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

func readRules(file string) ([]monitor.Rule, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return monitor.ParseRules(file, data)
}

// logs are the logs that there are on this machine.
func (c *Config) logs(hostRoot, stateDir string) (o monitor.Options, err error) {
	if c.LogRules != "" {
		if o.Rules, err = readRules(c.LogRules); err != nil {
			return o, fmt.Errorf("host: %w", err)
		}
	}
	o.StateFile = filepath.Join(stateDir, PositionsFile)
	switch c.KernelLog {
	case "journal":
		o.JournalKernel = true
	case Auto:
		if readable("/dev/kmsg") {
			o.Kmsg = "/dev/kmsg"
		}
	default:
		o.Kmsg = c.KernelLog
	}
	if _, err := exec.LookPath("journalctl"); err == nil && (o.JournalKernel || readable(filepath.Join(hostRoot, "run/systemd/journal"))) {
		o.Units = origins(c.Units)
		if hostRoot != "" && hostRoot != "/" {
			o.JournalArgs = []string{"--root=" + hostRoot}
		}
	}
	o.Files = origins(c.LogFiles)
	return o, nil
}

func origins(list map[string]string) map[string]monitor.Origin {
	all := map[string]monitor.Origin{}
	for name, origin := range list {
		all[name] = monitor.Origin(strings.TrimSpace(origin))
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
