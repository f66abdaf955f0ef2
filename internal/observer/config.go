package observer

import (
	_ "embed"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/internal/alert/alertsetup"
	"github.com/statusd/statusd/internal/configfile"
	"github.com/statusd/statusd/internal/guard/guardsetup"
	"github.com/statusd/statusd/internal/machine"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/process/console"
)

// The version and kind that a config file begins with.
const (
	APIVersion = "statusd/v1alpha1"
	Kind       = "ObserveConfiguration"
)

//go:embed observe.yaml
var defaultFile string

// file has the settings of an observer.
var file = sync.OnceValue(func() *configfile.File[Config] {
	return configfile.New[Config](configfile.Options{
		Text: defaultFile, Command: "statusd config default --observe", APIVersion: APIVersion, Kind: Kind, Former: console.Former(former),
	})
})

// former are settings of earlier versions, in addition to the former settings of both processes.
var former = map[string]string{
	"machinePace":     "the machine is read every 30 s",
	"criPace":         "the runtime is listed every 2 s",
	"shutdownTimeout": "the observer stops within 10 s",
	"kubelet.pace":    "the kubelet is asked every 10 s",
	"audit":           "changes are collected for 50 ms before they are audited",
	"guard.webhook":   "set rules.pack and outputs.webhooks: the rules KubeletUnhealthy and KubeletRestartWithheld report it",

	"events":        "set outputs.events",
	"nodeCondition": "set outputs.conditions",

	"repair.after":        "the kubelet must have been dead for 5 minutes",
	"guard.interval":      "the evidence is read every 3 s",
	"guard.evidenceCount": "the evidence of 20 restarts is kept",
	"guard.evidenceBytes": "the evidence of restarts takes at most 64 MiB",
	"guard.pidFile":       "set kubelet.process to the path of the file",
	"kubelet.pidFile":     "set kubelet.process to the path of the file",
	"guard.logFile":       "name the file in machine.logFiles, as one of the kubelet",
	"guard.firstPause":    "it is half of guard.coolDown",
	"guard.lastPause":     "it is ten times guard.coolDown",
	"repair.budget":       "at most 5 repairs are made per hour",
	"machine.units":       "the journal of guard.unit and guard.runtimeUnit is read",
	"machine.disks":       "the file systems of / and kubeletRoot count in the load",

	"guard.command":        "set restartCommand, or unit",
	"guard.runtimeCommand": "set runtimeUnit",
	"kubelet.serverName":   "the name in the kubelet's certificate is the node's name; set insecure if another name is in it",
}

// Config is an operator's configuration of an observer. It is plain data: [Default] is complete,
// and observe.yaml documents each field.
type Config struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`

	NodeName           string `yaml:"nodeName"`
	Kubeconfig         string `yaml:"kubeconfig"`
	StateDir           string `yaml:"stateDir"`
	HostRoot           string `yaml:"hostRoot"`
	KubeletRoot        string `yaml:"kubeletRoot"`
	Manifests          string `yaml:"manifests"`
	CRIEndpoint        string `yaml:"criEndpoint"`
	HealthzBindAddress string `yaml:"healthzBindAddress"`
	MetricsBindAddress string `yaml:"metricsBindAddress"`

	Outputs console.Outputs `yaml:"outputs"`
	Log     LogConfig       `yaml:"log"`
	Kubelet KubeletConfig   `yaml:"kubelet"`
	Repair  RepairConfig    `yaml:"repair"`

	Guard guardsetup.Config `yaml:"guard"`
	// Machine is about the logs and the load of the machine.
	Machine machine.Config    `yaml:"machine"`
	Rules   alertsetup.Config `yaml:"rules"`

	// QuerySocket is where the query API is served on a Unix socket: empty is statusd.sock in StateDir, and
	// [process.NoSocket] none.
	QuerySocket string `yaml:"-"`
}

// LogConfig is about the log of the observer.
type LogConfig = process.LogConfig

// KubeletConfig configures the requests to the kubelet.
type KubeletConfig struct {
	PodsSocket string `yaml:"podsSocket"`
	URL        string `yaml:"url"`
	CAFile     string `yaml:"caFile"`
	Insecure   bool   `yaml:"insecure"`
	CertFile   string `yaml:"certFile"`
	KeyFile    string `yaml:"keyFile"`
	TokenFile  string `yaml:"tokenFile"`
	Process    string `yaml:"process"`
}

// pidFile is the file with the process ID of the kubelet; empty if its process has a name.
func (k *KubeletConfig) pidFile() string {
	if filepath.IsAbs(k.Process) {
		return k.Process
	}
	return ""
}

// RepairConfig configures the allowed repairs.
type RepairConfig struct {
	Kinds  []string `yaml:"kinds"`
	DryRun bool     `yaml:"dryRun"`
	// Budget is how many repairs there may be per hour, 5 if 0; tests set it.
	Budget int `yaml:"-"`
}

// How often the sides are read if nothing else has changed, and how long the observer may take to stop.
const (
	machinePace     = 30 * time.Second
	criPace         = 2 * time.Second
	kubeletPace     = 10 * time.Second
	shutdownTimeout = 10 * time.Second
)

// Default is the configuration of an observer without a config file and flags.
func Default() Config { return file().Default() }

// AddFlags defines a flag for each setting that has one. Its default is the config's
// value, and parsing it changes the config: bind a config that a file was read into, and
// flags override the file.
func (c *Config) AddFlags(flags *pflag.FlagSet) { file().AddFlags(c, flags) }

// WriteDefault writes the default config file.
func WriteDefault(w io.Writer) error {
	_, err := io.WriteString(w, file().Text())
	return err
}

// Write writes the config as a file that documents each field. The heading is its first line.
func (c *Config) Write(w io.Writer, heading string) error { return file().Write(w, heading, c) }

// LoadFile reads a config file over the defaults.
func LoadFile(path string) (Config, error) { return process.LoadFile(path, Load) }

// Load decodes a config file over the defaults: fields that the file does not name keep their defaults.
// A field that does not exist, is named twice or has the wrong type is an error with its line; so is
// another version or kind. Relative paths are relative to the file's directory. The values are checked
// by [Config.Validate].
func Load(path string, data []byte) (Config, error) {
	c, err := file().Load(path, data)
	if err != nil {
		return Config{}, err
	}
	process.ResolvePaths(path, &c.Kubeconfig, &c.StateDir, &c.HostRoot, &c.KubeletRoot, &c.Manifests,
		&c.Kubelet.PodsSocket, &c.Kubelet.CAFile, &c.Kubelet.CertFile, &c.Kubelet.KeyFile, &c.Kubelet.TokenFile,
		&c.Guard.CertificateFile, &c.Machine.LogRules)
	c.Rules.Resolve(func(paths ...*string) { process.ResolvePaths(path, paths...) })
	process.ResolvePaths(path, c.Outputs.Paths()...)
	return c, nil
}

// machine returns the watched parts of the machine: the logs of kubelet and runtime, and the disks that a
// kubelet uses, unless a test sets them.
func (c *Config) machine() machine.Config {
	m := c.Machine
	if m.Disks == nil {
		m.Disks = []string{"/", c.KubeletRoot}
	}
	if m.Units != nil {
		return m
	}
	m.Units = map[string]string{}
	for unit, origin := range map[string]logs.Origin{c.Guard.Unit: logs.KubeletLog, c.Guard.RuntimeUnit: logs.RuntimeLog} {
		if unit != "" {
			m.Units[unit] = string(origin)
		}
	}
	return m
}

// kubeletLog is the first log file of the kubelet, empty if the config names none.
func (c *Config) kubeletLog() string {
	for _, file := range slices.Sorted(maps.Keys(c.Machine.LogFiles)) {
		if logs.Origin(c.Machine.LogFiles[file]) == logs.KubeletLog {
			return file
		}
	}
	return ""
}

// runtimeEndpoint is the CRI endpoint of the container runtime, or "" if it is disabled.
func (c *Config) runtimeEndpoint() string {
	if c.CRIEndpoint == process.NoSocket {
		return ""
	}
	return c.CRIEndpoint
}

// QuerySocketPath is where the query API is served on a Unix socket, empty if it is not.
func (c *Config) QuerySocketPath() string {
	return process.SocketPath(c.QuerySocket, c.StateDir, "statusd.sock")
}
