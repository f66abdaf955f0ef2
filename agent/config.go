package agent

import (
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/eviction"
	"github.com/statusd/statusd/guard/host"
	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/rules/alerting"
)

// The version and kind that a config file begins with.
const (
	APIVersion = "statusd/v1alpha1"
	Kind       = "StatusdConfiguration"
)

// ProcessTaint is the key of the default taint. A pod of the process runtime is a process of this
// machine, so only pods that tolerate it, or name the node, may come here.
const ProcessTaint = "statusd/process"

// Config is everything that an operator decides about statusd. It is plain data: [Default]
// is a complete one but for what only the operator can know, and settings.go says of each
// field what it is for.
type Config struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`

	NodeName            string        `yaml:"nodeName"`
	Kubeconfig          string        `yaml:"kubeconfig"`
	BootstrapKubeconfig string        `yaml:"bootstrapKubeconfig"`
	StateDir            string        `yaml:"stateDir"`
	Manifests           string        `yaml:"manifests"`
	ManifestsRescan     time.Duration `yaml:"manifestsRescan"`
	HealthzBindAddress  string        `yaml:"healthzBindAddress"`
	QuerySocket         string        `yaml:"querySocket"`
	PodsSocket          string        `yaml:"podsSocket"`
	ShutdownTimeout     time.Duration `yaml:"shutdownTimeout"`
	LeaveCluster        bool          `yaml:"leaveCluster"`

	AllowPodsWithoutIsolation bool   `yaml:"allowPodsWithoutIsolation"`
	CgroupParent              string `yaml:"cgroupParent"`

	ShutdownGracePeriod             time.Duration `yaml:"shutdownGracePeriod"`
	ShutdownGracePeriodCriticalPods time.Duration `yaml:"shutdownGracePeriodCriticalPods"`

	Log           LogConfig       `yaml:"log"`
	Node          NodeConfig      `yaml:"node"`
	StatusUpdates UpdatesConfig   `yaml:"statusUpdates"`
	ContainerLogs ContainerConfig `yaml:"containerLogs"`
	Eviction      EvictionConfig  `yaml:"eviction"`
	Server        ServerConfig    `yaml:"server"`
	Rules         alerting.Config `yaml:"rules"`
	Machine       host.Config     `yaml:"machine"`
	Guard         GuardConfig     `yaml:"guard"`
}

// LogConfig is about statusd's own log.
type LogConfig = daemon.LogConfig

// NodeConfig is about the Node object. Taints are KEY[=VALUE]:EFFECT, as kubectl takes them.
type NodeConfig struct {
	Labels    map[string]string `yaml:"labels"`
	Taints    []string          `yaml:"taints"`
	Addresses []string          `yaml:"addresses"`
	MaxPods   int               `yaml:"maxPods"`
	Reserved  map[string]string `yaml:"reserved"`
}

// UpdatesConfig bounds the requests by which statuses are sent.
type UpdatesConfig struct {
	QPS   float64 `yaml:"qps"`
	Burst int     `yaml:"burst"`
}

// ContainerConfig bounds the log of each container.
type ContainerConfig struct {
	MaxBytes int64 `yaml:"maxBytes"`
	MaxFiles int   `yaml:"maxFiles"`
}

// EvictionConfig says when pods are evicted because the machine runs short, by signal:
// memory.available, nodefs.available, nodefs.inodesFree, pid.available.
type EvictionConfig struct {
	Hard                     map[string]string `yaml:"hard"`
	Soft                     map[string]string `yaml:"soft"`
	SoftGracePeriod          map[string]string `yaml:"softGracePeriod"`
	MinimumReclaim           map[string]string `yaml:"minimumReclaim"`
	MaxPodGracePeriod        time.Duration     `yaml:"maxPodGracePeriod"`
	PressureTransitionPeriod time.Duration     `yaml:"pressureTransitionPeriod"`
}

// ServerConfig is about the API that the API server connects to for kubectl logs, exec and top.
type ServerConfig struct {
	BindAddress        string `yaml:"bindAddress"`
	ClientCAFile       string `yaml:"clientCAFile"`
	TLSCertFile        string `yaml:"tlsCertFile"`
	TLSPrivateKeyFile  string `yaml:"tlsPrivateKeyFile"`
	RequestCertificate bool   `yaml:"requestCertificate"`
}

// Default is the configuration of a statusd without a config file and flags.
func Default() Config {
	return Config{
		APIVersion:         APIVersion,
		Kind:               Kind,
		StateDir:           "/var/lib/statusd",
		Manifests:          "/etc/statusd/manifests",
		ManifestsRescan:    20 * time.Second,
		HealthzBindAddress: "127.0.0.1:10265",
		ShutdownTimeout:    20 * time.Second,
		CgroupParent:       "/statusd",

		ShutdownGracePeriod:             30 * time.Second,
		ShutdownGracePeriodCriticalPods: 10 * time.Second,

		Log:           LogConfig{Format: "text", Level: "info"},
		Node:          NodeConfig{Labels: map[string]string{}, Taints: []string{ProcessTaint + ":NoSchedule"}, Addresses: []string{}, MaxPods: 110, Reserved: map[string]string{}},
		StatusUpdates: UpdatesConfig{QPS: 50, Burst: 100},
		ContainerLogs: ContainerConfig{MaxBytes: 10 << 20, MaxFiles: 5},
		Eviction: EvictionConfig{
			Hard: eviction.DefaultHard(), Soft: map[string]string{}, SoftGracePeriod: map[string]string{}, MinimumReclaim: map[string]string{},
			PressureTransitionPeriod: 5 * time.Minute,
		},
		Server:  ServerConfig{BindAddress: ":10250"},
		Rules:   alerting.Default(),
		Machine: machineDefault(),
		Guard:   GuardConfig{Enabled: true, NodeCondition: true, Events: true},
	}
}

// Embedded is the configuration of a program that brings a runtime of its own: no manifests, no
// endpoints, no taint, and a state directory of the user and the node, so that it needs no rights
// of root. An empty name is that of the host. Set Kubeconfig, or [Options.RESTConfig], so that pods
// come from somewhere.
func Embedded(nodeName string) Config {
	c := Default()
	c.NodeName = nodeName
	c.StateDir = userStateDir(nodeName)
	c.Manifests, c.HealthzBindAddress, c.Server.BindAddress, c.CgroupParent = "", "", "", ""
	c.QuerySocket, c.PodsSocket = NoSocket, NoSocket
	c.Machine, c.Guard = host.Config{}, GuardConfig{}
	c.Node.Taints = []string{}
	return c
}

// userStateDir is where programs of a user keep their state, by the XDG Base Directory
// Specification. It is empty, which [Config.Validate] reports, if there is no home directory.
func userStateDir(nodeName string) string {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "statusd", nodeName)
}

// RuntimeDir is where a runtime keeps its state, below the state directory.
func (c *Config) RuntimeDir() string { return filepath.Join(c.StateDir, runtimeDirectory) }

// LoadFile reads a config file over the defaults.
func LoadFile(path string) (Config, error) { return daemon.LoadFile(path, Load) }

// Load decodes a config file over the defaults: what it does not name stays as it is by
// default. A field that does not exist, is named twice or has the wrong type is an error
// with its line; so is another version. Relative paths are relative to the file's directory. The
// values are checked by [Config.Validate].
func Load(path string, data []byte) (Config, error) {
	c := Default()
	c.APIVersion, c.Kind = "", "" // these must be said
	if err := daemon.Decode(path, data, "statusd config default", &c); err != nil {
		return Config{}, err
	}
	if err := daemon.CheckKind(path, c.APIVersion, c.Kind, APIVersion, Kind); err != nil {
		return Config{}, err
	}
	daemon.ResolvePaths(path, &c.Kubeconfig, &c.BootstrapKubeconfig, &c.StateDir, &c.Manifests, &c.QuerySocket, &c.PodsSocket,
		&c.Server.ClientCAFile, &c.Server.TLSCertFile, &c.Server.TLSPrivateKeyFile)
	daemon.ResolvePaths(path, c.Rules.Paths()...)
	daemon.ResolvePaths(path, &c.Machine.LogRules)
	return c, nil
}

// NoSocket as the path of a socket means that there is none.
const NoSocket = daemon.NoSocket

// QuerySocketPath is where the query API is served on a Unix socket, empty if it is not.
func (c *Config) QuerySocketPath() string {
	return daemon.SocketPath(c.QuerySocket, c.StateDir, querySocket)
}

// PodsSocketPath is where the kubelet's Pods API is served, empty if it is not.
func (c *Config) PodsSocketPath() string {
	return daemon.SocketPath(c.PodsSocket, c.StateDir, podsSocket)
}
