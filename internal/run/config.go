package run

import (
	_ "embed"
	"io"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/alert/alertsetup"
	"github.com/statusd/statusd/internal/configfile"
	"github.com/statusd/statusd/internal/machine"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/process/console"
)

// The version and kind that a config file begins with.
const (
	APIVersion = "statusd/v1alpha1"
	Kind       = "StatusdConfiguration"
)

//go:embed statusd.yaml
var defaultFile string

// file has the settings of statusd run.
var file = sync.OnceValue(func() *configfile.File[Config] {
	return configfile.New[Config](configfile.Options{
		Text: defaultFile, Command: "statusd config default", APIVersion: APIVersion, Kind: Kind, Former: console.Former(former),
	})
})

// former are settings of earlier versions, in addition to the former settings of both processes.
var former = map[string]string{
	"manifestsRescan": "the manifests are read again every 20 s",
	"leaveCluster":    "start statusd once with the flag --leave-cluster",

	"statusUpdates.burst":             "it is twice statusUpdates.qps",
	"containerLogs.maxFiles":          "five files are kept of each log; set containerLogs.maxBytes",
	"eviction.maxPodGracePeriod":      "a pod that is evicted for a soft threshold has its own grace period",
	"shutdownGracePeriodCriticalPods": "it is a third of shutdownGracePeriod",
	"eviction.minimumReclaim":         "evictions stop once as much is left as the threshold says; raise the threshold",

	"machine.units": "name the files of logs in machine.logFiles",
	"machine.disks": "the disk of / counts in the load",
}

// ProcessTaint is the key of the default taint. A pod of the process runtime is a process of this
// machine, so only pods that tolerate it, or name the node, may come here.
const ProcessTaint = "statusd/process"

// The runtimes that statusd run brings.
const (
	RuntimeProcess = "process"
	RuntimeCRI     = "cri"
)

// withoutProcessTaint is the config of a node whose pods are no processes: the default taint would keep all pods away.
func (c Config) withoutProcessTaint() Config {
	if c.Runtime == RuntimeCRI && slices.Equal(c.Node.Taints, Default().Node.Taints) {
		c.Node.Taints = nil
	}
	return c
}

// Config is an operator's configuration of statusd run: the node, and the daemon's own settings. It is
// plain data: [Default] is complete except for values that only the operator has, and statusd.yaml
// documents each field.
type Config struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`

	agent.Config `yaml:",inline"`

	PodsSocket                string   `yaml:"podsSocket"`
	Runtime                   string   `yaml:"runtime"`
	ContainerRuntimeEndpoint  string   `yaml:"containerRuntimeEndpoint"`
	ClusterDNS                []string `yaml:"clusterDNS"`
	ClusterDomain             string   `yaml:"clusterDomain"`
	AllowPodsWithoutIsolation bool     `yaml:"allowPodsWithoutIsolation"`
	CgroupParent              string   `yaml:"cgroupParent"`

	Log           LogConfig         `yaml:"log"`
	ContainerLogs ContainerConfig   `yaml:"containerLogs"`
	Outputs       console.Outputs   `yaml:"outputs"`
	Rules         alertsetup.Config `yaml:"rules"`
	Machine       MachineConfig     `yaml:"machine"`
	Guard         GuardConfig       `yaml:"guard"`

	// QuerySocket is where the query API is served on a Unix socket: empty is statusd.sock in StateDir, and
	// [process.NoSocket] none.
	QuerySocket string `yaml:"-"`
}

// MachineConfig is about the logs of the machine.
type MachineConfig struct {
	LogFiles map[string]string `yaml:"logFiles"`
	LogRules string            `yaml:"logRules"`
	// NoKernelLog is as in [machine.Config]; tests set it.
	NoKernelLog bool `yaml:"-"`
}

// host returns the watched parts of the machine, on a node without a kubelet's or a container
// runtime's log.
func (m *MachineConfig) host() machine.Config {
	return machine.Config{NoKernelLog: m.NoKernelLog, LogFiles: m.LogFiles, LogRules: m.LogRules, Disks: []string{"/"}}
}

// LogConfig is about statusd's own log.
type LogConfig = process.LogConfig

// GuardConfig is about the verdict of an agent on itself. There is no setting for restarts: it never restarts itself.
type GuardConfig struct {
	Enabled bool `yaml:"enabled"`
}

// ContainerConfig bounds the log of each container.
type ContainerConfig struct {
	MaxBytes int64 `yaml:"maxBytes"`
}

// Default is the configuration of statusd run without a config file and flags.
func Default() Config { return file().Default() }

// AddFlags defines a flag for each setting that has one. Its default is the config's
// value, and parsing it changes the config: bind a config that a file was read into, and
// flags override the file.
//
// --leave-cluster is no setting: it is meant for one start, and would be forgotten in a file.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	file().AddFlags(c, flags)
	flags.BoolVar(&c.LeaveCluster, "leave-cluster", c.LeaveCluster,
		"Without a kubeconfig, use the state of a node of a cluster, which ends its pods of the API. Otherwise statusd refuses to start on such a state.")
}

// WriteDefault writes the default config file.
func WriteDefault(w io.Writer) error {
	_, err := io.WriteString(w, file().Text())
	return err
}

// LoadFile reads a config file over the defaults.
func LoadFile(path string) (Config, error) { return process.LoadFile(path, Load) }

// Load decodes a config file over the defaults: fields that the file does not name keep their
// defaults. A field that does not exist, is named twice or has the wrong type is an error with its
// line; so is another version. Relative paths are relative to the file's directory. The values are
// checked by [Config.Validate].
func Load(path string, data []byte) (Config, error) {
	c, err := file().Load(path, data)
	if err != nil {
		return Config{}, err
	}
	process.ResolvePaths(path, &c.Kubeconfig, &c.BootstrapKubeconfig, &c.StateDir, &c.Manifests, &c.PodsSocket,
		&c.Server.ClientCAFile, &c.Server.TLSCertFile, &c.Server.TLSPrivateKeyFile, &c.Machine.LogRules)
	c.Rules.Resolve(func(paths ...*string) { process.ResolvePaths(path, paths...) })
	process.ResolvePaths(path, c.Outputs.Paths()...)
	return c, nil
}

// Sockets in the state directory, unless the config has other paths.
const (
	querySocket = "statusd.sock" // what the endpoints serve
	podsSocket  = "pods.sock"    // the kubelet's Pods API
)

// QuerySocketPath is where the query API is served on a Unix socket, empty if it is not.
func (c *Config) QuerySocketPath() string {
	return process.SocketPath(c.QuerySocket, c.StateDir, querySocket)
}

// PodsSocketPath is where the kubelet's Pods API is served, empty if it is not.
func (c *Config) PodsSocketPath() string {
	return process.SocketPath(c.PodsSocket, c.StateDir, podsSocket)
}

// shown is the config as /configz shows it: by the names of the file. It has no secrets: the config only
// names the files of secrets.
func (c *Config) shown() any { return file().Values(c) }
