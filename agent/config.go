package agent

import (
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/internal/node/eviction"
)

// EmbeddedTaint is the key of the taint of [Embedded].
const EmbeddedTaint = "statusd/embedded"

// Config is what an operator decides about a node. It is plain data: [Embedded] is a complete one but
// for what only the operator can know. The YAML names are those of the config file of statusd run.
type Config struct {
	// NodeName is the name of the node, and of its Node object. Empty: the host name, in lower case.
	NodeName string `yaml:"nodeName"`
	// Kubeconfig is how to reach the API server, as user system:node:NAME. Empty: [Options.RESTConfig], or
	// else standalone: static pods only and no API server.
	Kubeconfig string `yaml:"kubeconfig"`
	// BootstrapKubeconfig is how [Bootstrap] requests a client certificate, usually with a bootstrap token, and
	// writes Kubeconfig. Empty: Kubeconfig must exist.
	BootstrapKubeconfig string `yaml:"bootstrapKubeconfig"`
	// StateDir is where the node keeps what must survive a restart: the journal, the state of its runtime, its
	// certificates. One node at a time can use it.
	StateDir string `yaml:"stateDir"`
	// Manifests is the directory of static pods, read again when its files change. It need not exist yet. Empty:
	// no static pods.
	Manifests string `yaml:"manifests"`
	// HealthzBindAddress is where /livez, /readyz, /metrics and /debug/pending are served, without
	// authentication: a loopback address. Port 0 takes a free one: see [Agent.Address]. Empty: not at all.
	HealthzBindAddress string `yaml:"healthzBindAddress"`
	// ShutdownTimeout is how long the node may take to stop. Half of it at most is spent on delivering the last
	// statuses. Containers run on.
	ShutdownTimeout time.Duration `yaml:"shutdownTimeout"`
	// LeaveCluster allows a node without an API server to use the state of a node of a cluster, which ends
	// its pods of the API. Otherwise [New] refuses such a state.
	LeaveCluster bool `yaml:"-"`

	// ShutdownGracePeriod is how long pods may take to end before the machine shuts down, or when the node is
	// drained. 0: shutdowns of the machine are not delayed.
	ShutdownGracePeriod time.Duration `yaml:"shutdownGracePeriod"`
	// ShutdownGracePeriodCriticalPods is how much of ShutdownGracePeriod is kept for critical pods, which end last.
	ShutdownGracePeriodCriticalPods time.Duration `yaml:"shutdownGracePeriodCriticalPods"`

	// Node is about the Node object.
	Node NodeConfig `yaml:"node"`
	// StatusUpdates bounds the requests by which statuses are sent.
	StatusUpdates UpdatesConfig `yaml:"statusUpdates"`
	// Eviction says when pods are evicted because the machine runs short.
	Eviction EvictionConfig `yaml:"eviction"`
	// Server is about the kubelet's API, which kubectl logs, exec, attach, port-forward and top need. It is served
	// if [Options.KubeletAPI] says by what.
	Server ServerConfig `yaml:"server"`
}

// NodeConfig is about the Node object.
type NodeConfig struct {
	// Labels are those of the Node beside host name, os and architecture.
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

// UpdatesConfig bounds the requests by which statuses are sent.
type UpdatesConfig struct {
	// QPS is how many statuses per second are sent in the long run, and twice as many at once after a quiet time. 0: no limit.
	QPS float64 `yaml:"qps"`
}

// EvictionConfig says when pods are evicted because the machine runs short, by signal:
// memory.available, nodefs.available, nodefs.inodesFree, pid.available.
type EvictionConfig struct {
	// Hard is how much must be left, as in {"memory.available": "100Mi", "nodefs.available": "10%"}. With less,
	// pods are evicted at once, one at a time. Signals that are not named keep their defaults; 0% switches one off.
	Hard map[string]string `yaml:"hard"`
	// Soft is the same, but pods are evicted only after the grace period of the signal.
	Soft map[string]string `yaml:"soft"`
	// SoftGracePeriod is how long a soft threshold may be crossed, as in {"memory.available": "1m30s"}.
	SoftGracePeriod map[string]string `yaml:"softGracePeriod"`
	// MinimumReclaim is how much more than the threshold must be left before evictions stop. statusd run has no setting for it.
	MinimumReclaim map[string]string `yaml:"-"`
	// MaxPodGracePeriod is how long a pod that is evicted for a soft threshold may take to end at most.
	MaxPodGracePeriod time.Duration `yaml:"maxPodGracePeriod"`
	// PressureTransitionPeriod is how long the Node shows pressure after it was last seen.
	PressureTransitionPeriod time.Duration `yaml:"pressureTransitionPeriod"`
}

// ServerConfig is about the API that the API server connects to for kubectl logs, exec and top.
type ServerConfig struct {
	// BindAddress is where the API is served, over TLS and with authentication. Port 0 takes a free one: see
	// [Agent.ServerAddress]. Empty: not at all. Without an API server it is served on a loopback address only.
	BindAddress string `yaml:"bindAddress"`
	// ClientCAFile has the certificates of the authorities whose client certificates are accepted: that of the
	// cluster. Empty: bearer tokens only.
	ClientCAFile string `yaml:"clientCAFile"`
	// TLSCertFile is the certificate of the server, with intermediate ones after it. Empty: see RequestCertificate.
	TLSCertFile string `yaml:"tlsCertFile"`
	// TLSPrivateKeyFile is the key of TLSCertFile.
	TLSPrivateKeyFile string `yaml:"tlsPrivateKeyFile"`
	// RequestCertificate has the certificate requested from the cluster, and renewed. Otherwise, and without
	// TLSCertFile, it is self-signed.
	RequestCertificate bool `yaml:"requestCertificate"`
}

// Embedded is the configuration of a program that brings a runtime of its own: no manifests, no
// endpoints, and a state directory of the user and the node, so that it needs no rights
// of root. An empty name is that of the host. Set Kubeconfig, or [Options.RESTConfig], so that pods
// come from somewhere.
//
// The Node has the taint [EmbeddedTaint]: no scheduler knows which pods the runtime can run, and without the taint
// it would give the node a share of all pods of a cluster. Pods for the node tolerate it, as those of a virtual kubelet do.
func Embedded(nodeName string) Config {
	return Config{
		NodeName:        nodeName,
		StateDir:        userStateDir(nodeName),
		ShutdownTimeout: 20 * time.Second,

		ShutdownGracePeriod:             30 * time.Second,
		ShutdownGracePeriodCriticalPods: 10 * time.Second,

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

// RuntimeDir is where a runtime keeps its state, below the state directory.
func (c *Config) RuntimeDir() string { return filepath.Join(c.StateDir, runtimeDirectory) }
