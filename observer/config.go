package observer

import (
	"time"

	"github.com/statusd/statusd/guard/host"
	"github.com/statusd/statusd/guard/standard"
	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/observe/repair"
	"github.com/statusd/statusd/rules/alerting"
)

// The version and kind that a config file begins with.
const (
	APIVersion = "statusd/v1alpha1"
	Kind       = "ObserveConfiguration"
)

// Config is everything that an operator decides about an observer. It is plain data: [Default] is a
// complete one, and settings.go says of each field what it is for.
type Config struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`

	NodeName           string        `yaml:"nodeName"`
	Kubeconfig         string        `yaml:"kubeconfig"`
	StateDir           string        `yaml:"stateDir"`
	HostRoot           string        `yaml:"hostRoot"`
	KubeletRoot        string        `yaml:"kubeletRoot"`
	Manifests          string        `yaml:"manifests"`
	MachinePace        time.Duration `yaml:"machinePace"`
	CRIEndpoint        string        `yaml:"criEndpoint"`
	CRIPace            time.Duration `yaml:"criPace"`
	HealthzBindAddress string        `yaml:"healthzBindAddress"`
	MetricsBindAddress string        `yaml:"metricsBindAddress"`
	QuerySocket        string        `yaml:"querySocket"`
	ShutdownTimeout    time.Duration `yaml:"shutdownTimeout"`
	Events             bool          `yaml:"events"`
	NodeCondition      bool          `yaml:"nodeCondition"`

	Log     LogConfig     `yaml:"log"`
	Kubelet KubeletConfig `yaml:"kubelet"`
	Audit   AuditConfig   `yaml:"audit"`
	Repair  RepairConfig  `yaml:"repair"`

	Guard standard.Config `yaml:"guard"`
	// Machine is about the logs and the load of the machine.
	Machine host.Config     `yaml:"machine"`
	Rules   alerting.Config `yaml:"rules"`
}

// LogConfig is about the log of the observer.
type LogConfig = daemon.LogConfig

// KubeletConfig says how to ask the kubelet for its pods.
type KubeletConfig struct {
	PodsSocket string        `yaml:"podsSocket"`
	URL        string        `yaml:"url"`
	CAFile     string        `yaml:"caFile"`
	ServerName string        `yaml:"serverName"`
	Insecure   bool          `yaml:"insecure"`
	CertFile   string        `yaml:"certFile"`
	KeyFile    string        `yaml:"keyFile"`
	TokenFile  string        `yaml:"tokenFile"`
	Pace       time.Duration `yaml:"pace"`
	Process    string        `yaml:"process"`
	PIDFile    string        `yaml:"pidFile"`
}

// AuditConfig bounds when a difference is drift.
type AuditConfig struct {
	Delay time.Duration `yaml:"delay"`
}

// RepairConfig says what may be repaired.
type RepairConfig struct {
	Kinds  []string      `yaml:"kinds"`
	After  time.Duration `yaml:"after"`
	Budget int           `yaml:"budget"`
	DryRun bool          `yaml:"dryRun"`
}

// Default is the configuration of an observer without a config file and flags.
func Default() Config {
	return Config{
		APIVersion: APIVersion, Kind: Kind,
		StateDir:           "/var/lib/statusd-observe",
		HostRoot:           "/",
		KubeletRoot:        "/var/lib/kubelet",
		Manifests:          "/etc/kubernetes/manifests",
		MachinePace:        30 * time.Second,
		CRIEndpoint:        "unix:///run/containerd/containerd.sock",
		CRIPace:            2 * time.Second,
		HealthzBindAddress: "127.0.0.1:10266",
		ShutdownTimeout:    10 * time.Second,
		Log:                LogConfig{Format: "text", Level: "info"},
		Kubelet: KubeletConfig{
			PodsSocket: "/var/lib/kubelet/pods-api/pods-api.sock",
			URL:        "https://127.0.0.1:10250",
			Pace:       10 * time.Second,
			Process:    "kubelet",
		},
		Audit:   AuditConfig{Delay: 50 * time.Millisecond},
		Repair:  RepairConfig{Kinds: []string{}, After: repair.DefaultKubeletDead, Budget: repair.DefaultBudget},
		Guard:   standard.Default(),
		Machine: host.Default(),
		Rules:   readOnlyRules(),
	}
}

// LoadFile reads a config file over the defaults.
func LoadFile(path string) (Config, error) { return daemon.LoadFile(path, Load) }

// Load decodes a config file over the defaults: what it does not name stays as it is by
// default. A field that does not exist, is named twice or has the wrong type is an error
// with its line; so is another version or kind. Relative paths are relative to the file's directory. The
// values are checked by [Config.Validate].
func Load(path string, data []byte) (Config, error) {
	c := Default()
	c.APIVersion, c.Kind = "", "" // these must be said
	if err := daemon.Decode(path, data, "statusd config default --observe", &c); err != nil {
		return Config{}, err
	}
	if err := daemon.CheckKind(path, c.APIVersion, c.Kind, APIVersion, Kind); err != nil {
		return Config{}, err
	}
	daemon.ResolvePaths(path, &c.Kubeconfig, &c.StateDir, &c.HostRoot, &c.KubeletRoot, &c.Manifests, &c.QuerySocket,
		&c.Kubelet.PodsSocket, &c.Kubelet.CAFile, &c.Kubelet.CertFile, &c.Kubelet.KeyFile, &c.Kubelet.TokenFile, &c.Kubelet.PIDFile,
		&c.Guard.PIDFile, &c.Guard.LogFile, &c.Guard.CertificateFile, &c.Machine.LogRules)
	daemon.ResolvePaths(path, c.Rules.Paths()...)
	return c, nil
}

// runtimeEndpoint is where the container runtime serves CRI, empty if there is none to ask.
func (c *Config) runtimeEndpoint() string {
	if c.CRIEndpoint == daemon.NoSocket {
		return ""
	}
	return c.CRIEndpoint
}

// QuerySocketPath is where the query API is served on a Unix socket, empty if it is not.
func (c *Config) QuerySocketPath() string {
	return daemon.SocketPath(c.QuerySocket, c.StateDir, "statusd.sock")
}
