package agent

import (
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/internal/node/eviction"
)

// EmbeddedTaint is the key of the taint of [Embedded].
const EmbeddedTaint = "statusd/embedded"

// Config is the configuration of a node by its operator. Config is plain data. [Embedded] returns a
// Config with defaults for all fields whose value does not depend on the operator. The YAML names
// are the names in the config file of statusd run.
type Config struct {
	// NodeName is the name of the node, and of its Node object. Empty: the host name, in lower case.
	NodeName string `yaml:"nodeName"`
	// Kubeconfig is the path of the kubeconfig for the API server, with the user system:node:NAME. Empty:
	// [Options.RESTConfig], or else standalone: static pods only and no API server.
	Kubeconfig string `yaml:"kubeconfig"`
	// BootstrapKubeconfig is the kubeconfig with which [Bootstrap] requests a client certificate, usually with
	// a bootstrap token, and writes Kubeconfig. Empty: Kubeconfig must exist.
	BootstrapKubeconfig string `yaml:"bootstrapKubeconfig"`
	// StateDir is the directory of the state that must survive a restart: the journal, the state of the
	// runtime, the certificates. One node at a time can use a StateDir.
	StateDir string `yaml:"stateDir"`
	// Manifests is the directory of static pods, read again when its files change. It need not exist yet. Empty:
	// no static pods.
	Manifests string `yaml:"manifests"`
	// HealthzBindAddress is the address at which /livez, /readyz, /metrics and /debug/pending are served,
	// without authentication: a loopback address. Port 0 takes a free one: see [Agent.Address]. Empty: not
	// served.
	HealthzBindAddress string `yaml:"healthzBindAddress"`
	// ShutdownTimeout is how long the node may take to stop. At most half of the time is spent on delivering
	// the last statuses. Containers keep running.
	ShutdownTimeout time.Duration `yaml:"shutdownTimeout"`
	// LeaveCluster allows a node without an API server to use the state of a cluster node; the node then
	// ends the pods from the API. Otherwise [New] refuses such a state.
	LeaveCluster bool `yaml:"-"`

	// ShutdownGracePeriod is how long pods may take to end before the machine shuts down, or when the node is
	// drained. 0: shutdowns of the machine are not delayed.
	ShutdownGracePeriod time.Duration `yaml:"shutdownGracePeriod"`
	// ShutdownGracePeriodCriticalPods is how much of ShutdownGracePeriod is kept for critical pods, which end last. 0: a third.
	// statusd run has no setting for it.
	ShutdownGracePeriodCriticalPods time.Duration `yaml:"-"`

	// Node configures the Node object.
	Node NodeConfig `yaml:"node"`
	// StatusUpdates limits the rate of status updates.
	StatusUpdates UpdatesConfig `yaml:"statusUpdates"`
	// Eviction configures the eviction of pods under node pressure.
	Eviction EvictionConfig `yaml:"eviction"`
	// Server configures the kubelet's API, which kubectl logs, exec, attach, port-forward and top need. The API is
	// served only if [Options.KubeletAPI] is set.
	Server ServerConfig `yaml:"server"`
}

// NodeConfig configures the Node object.
type NodeConfig struct {
	// Labels are added to the Node besides hostname, os and arch.
	Labels map[string]string `yaml:"labels"`
	// Taints are KEY[=VALUE]:EFFECT, as kubectl takes them, set when the Node is created.
	Taints []string `yaml:"taints"`
	// Addresses are the IP addresses of the node and its pods, the primary one first. Empty: found on the machine.
	Addresses []string `yaml:"addresses"`
	// MaxPods is how many pods the node takes.
	MaxPods int `yaml:"maxPods"`
	// Reserved are resources that pods may not request, as in {"cpu": "500m", "memory": "1Gi"}.
	Reserved map[string]string `yaml:"reserved"`
}

// UpdatesConfig limits the rate of status updates.
type UpdatesConfig struct {
	// QPS is the average limit of status updates per second; the burst is twice as large. 0: no limit.
	QPS float64 `yaml:"qps"`
}

// EvictionConfig configures the eviction of pods under node pressure, by signal: memory.available,
// nodefs.available, nodefs.inodesFree, pid.available.
type EvictionConfig struct {
	// Hard has the hard eviction thresholds, as in {"memory.available": "100Mi", "nodefs.available": "10%"}. Below
	// a threshold, pods are evicted immediately, one at a time. Signals that are not listed keep their defaults; 0%
	// disables a signal.
	Hard map[string]string `yaml:"hard"`
	// Soft has the soft eviction thresholds: pods are evicted only after the grace period of the
	// signal.
	Soft map[string]string `yaml:"soft"`
	// SoftGracePeriod is how long a soft threshold may be crossed before pods are evicted, as in
	// {"memory.available": "1m30s"}.
	SoftGracePeriod map[string]string `yaml:"softGracePeriod"`
	// MinimumReclaim is how far above the threshold a signal must be before evictions stop. statusd run has no setting for it.
	MinimumReclaim map[string]string `yaml:"-"`
	// MaxPodGracePeriod limits the termination grace period of a pod evicted for a soft threshold. 0: the pod's own
	// grace period. statusd run has no setting for it.
	MaxPodGracePeriod time.Duration `yaml:"-"`
	// PressureTransitionPeriod is how long the Node reports pressure after the pressure was last
	// observed.
	PressureTransitionPeriod time.Duration `yaml:"pressureTransitionPeriod"`
}

// ServerConfig configures the kubelet's API, to which the API server connects for kubectl logs,
// exec and top.
type ServerConfig struct {
	// BindAddress is the address of the kubelet's API, served over TLS with authentication. Port 0 takes a
	// free one: see [Agent.ServerAddress]. Empty: not served. Without an API server only loopback addresses
	// are allowed.
	BindAddress string `yaml:"bindAddress"`
	// ClientCAFile has the certificates of the authorities whose client certificates are accepted: usually the
	// cluster's CA. Empty: bearer tokens only.
	ClientCAFile string `yaml:"clientCAFile"`
	// TLSCertFile is the certificate of the server, followed by intermediate certificates. Empty: see
	// RequestCertificate.
	TLSCertFile string `yaml:"tlsCertFile"`
	// TLSPrivateKeyFile is the key of TLSCertFile.
	TLSPrivateKeyFile string `yaml:"tlsPrivateKeyFile"`
	// RequestCertificate requests the certificate from the cluster and renews it. If false, and without
	// TLSCertFile, the certificate is self-signed.
	RequestCertificate bool `yaml:"requestCertificate"`
}

// Embedded returns the configuration for a program with its own runtime: no manifests, no
// endpoints, and a state directory of the user and the node, so that root is not required. An empty
// name means the host name. Set Kubeconfig, or [Options.RESTConfig], as the source of pods.
//
// The Node has the taint [EmbeddedTaint]: a scheduler cannot tell which pods the runtime can run, and without the taint it
// would assign the node a share of all pods of the cluster. Pods for the node must tolerate the taint, as with a virtual
// kubelet.
func Embedded(nodeName string) Config {
	return Config{
		NodeName:        nodeName,
		StateDir:        userStateDir(nodeName),
		ShutdownTimeout: 20 * time.Second,

		ShutdownGracePeriod: 30 * time.Second,

		Node:          NodeConfig{Labels: map[string]string{}, Taints: []string{EmbeddedTaint + ":NoSchedule"}, Addresses: []string{}, MaxPods: 110, Reserved: map[string]string{}},
		StatusUpdates: UpdatesConfig{QPS: 50},
		Eviction: EvictionConfig{
			Hard: eviction.DefaultHard(), Soft: map[string]string{}, SoftGracePeriod: map[string]string{},
			PressureTransitionPeriod: 5 * time.Minute,
		},
	}
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

// RuntimeDir is the directory for the state of the runtime, below the state directory.
func (c *Config) RuntimeDir() string { return filepath.Join(c.StateDir, runtimeDirectory) }
