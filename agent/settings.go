package agent

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/rules/alerting"
)

// A setting is one field of the config: the one place that says what it is called in the
// file and as a flag, and what it is for. What "statusd config default" prints, the flags
// of "statusd run" and their help are all made from the settings.
type setting daemon.Setting

// settings are those of a config, in the order of the file.
func settings(c *Config) []setting {
	list := []setting{
		{"apiVersion", "", &c.APIVersion, "Version of this file's format."},
		{"kind", "", &c.Kind, ""},
		{"nodeName", "node-name", &c.NodeName,
			"Name of this node, and of its Node object. Empty: the host name, in lower case."},
		{"kubeconfig", "kubeconfig", &c.Kubeconfig,
			"How to reach the API server, as user system:node:NAME. Empty: standalone, that is\nstatic pods only and no API server."},
		{"bootstrapKubeconfig", "bootstrap-kubeconfig", &c.BootstrapKubeconfig,
			"How to request a client certificate, usually with a bootstrap token. If kubeconfig does not\nexist, or its certificate has expired, statusd requests one, waits for its approval and\nwrites kubeconfig; it renews the certificate before it expires."},
		{"stateDir", "state-dir", &c.StateDir,
			"Where statusd keeps what must survive a restart: the journal, containers and their logs.\nOne statusd at a time can use it."},
		{"manifests", "manifests", &c.Manifests,
			"Directory of static pods: *.yaml, *.yml, *.json and *.manifest, read again when they\nchange. It need not exist yet. Empty: no static pods."},
		{"manifestsRescan", "", &c.ManifestsRescan,
			"How often the manifests are read though nothing seems to have happened, for file systems\nthat do not notify."},
		{"healthzBindAddress", "healthz-bind-address", &c.HealthzBindAddress,
			"Where /livez, /readyz, /metrics, the page, the query API and /debug/pending are served, without\nauthentication: keep it on a loopback address. Port 0 takes a free one and logs it. Empty: not at all."},
		{"querySocket", "", &c.QuerySocket,
			"Unix socket, of mode 0600, where the same is served; statusd get and others ask there. Empty:\nstatusd.sock in stateDir. none: not at all."},
		{"podsSocket", "", &c.PodsSocket,
			"Unix socket, of mode 0600, of the kubelet's Pods API (gRPC, v1alpha1), with whole pods. Programs that\nlook for the kubelet's need /var/lib/kubelet/pods/kubelet.sock. Empty: pods.sock in stateDir.\nnone: not at all."},
		{"shutdownTimeout", "shutdown-timeout", &c.ShutdownTimeout,
			"How long statusd may take to stop. Half of it at most is spent on delivering the last\nstatuses. Containers run on."},
		{"leaveCluster", "leave-cluster", &c.LeaveCluster,
			"Whether a statusd without a kubeconfig may use the state of a node of a cluster, which\nends its pods of the API. Otherwise it refuses to start on such a state."},
		{"allowPodsWithoutIsolation", "", &c.AllowPodsWithoutIsolation,
			"Run API pods that do not ask for hostNetwork, hostPID and hostIPC. They expect to be\nisolated from this machine, and policies of the cluster take them for isolated, but they are\nprocesses of this machine: users who may create pods for this node may do here what the users\nmay that the pods run as, root included. See docs/security.md."},
		{"cgroupParent", "", &c.CgroupParent,
			"Control group under which each pod gets one of its own, from the root of the hierarchy.\nLimits need it. Empty, or not writable: pods with limits are rejected."},
		{"shutdownGracePeriod", "", &c.ShutdownGracePeriod,
			"How long pods may take to end before the machine shuts down, or when the node is drained.\nlogind allows InhibitDelayMaxSec of it. 0: shutdowns of the machine are not delayed."},
		{"shutdownGracePeriodCriticalPods", "", &c.ShutdownGracePeriodCriticalPods,
			"How much of it is kept for critical pods, which end last."},
		{"log.format", "log-format", &c.Log.Format, "text or json, on standard error."},
		{"log.level", "log-level", &c.Log.Level, "debug, info, warn or error."},
		{"node.labels", "", &c.Node.Labels,
			"Labels of the Node beside host name, os and architecture."},
		{"node.taints", "", &c.Node.Taints,
			"Taints, KEY[=VALUE]:EFFECT, set when the Node is created. The API server lets no node\nchange them later. The default keeps pods away that do not tolerate it: they are not made\nto run as processes, and would be rejected one after the other. []: none."},
		{"node.addresses", "", &c.Node.Addresses,
			"IP addresses of the node and its pods, the primary one first. Empty: found on the machine."},
		{"node.maxPods", "", &c.Node.MaxPods, "How many pods the node takes."},
		{"node.reserved", "", &c.Node.Reserved,
			"Resources that pods may not request, as in {cpu: 500m, memory: 1Gi}, beside those that\nkeep the machine from running short."},
		{"statusUpdates.qps", "kube-api-qps", &c.StatusUpdates.QPS,
			"Statuses a second that are sent to the API server in the long run. 0: no limit."},
		{"statusUpdates.burst", "kube-api-burst", &c.StatusUpdates.Burst,
			"Statuses that are sent at once after a quiet time."},
		{"containerLogs.maxBytes", "", &c.ContainerLogs.MaxBytes,
			"Size at which the log file of a container is rotated."},
		{"containerLogs.maxFiles", "", &c.ContainerLogs.MaxFiles,
			"Log files that are kept of a container, the current one included."},
		{"eviction.hard", "", &c.Eviction.Hard,
			"How much must be left, as in {memory.available: 100Mi, nodefs.available: 10%}; nodefs is the file\nsystem of stateDir. With less, pods are evicted at once, one at a time. Signals that are not named\nkeep their defaults; 0% switches one off. There is pid.available too."},
		{"eviction.soft", "", &c.Eviction.Soft,
			"The same, but pods are evicted only after the grace period of the signal."},
		{"eviction.softGracePeriod", "", &c.Eviction.SoftGracePeriod,
			"How long a soft threshold may be crossed, as in {memory.available: 1m30s}."},
		{"eviction.minimumReclaim", "", &c.Eviction.MinimumReclaim,
			"How much more than the threshold must be left before evictions stop, by signal."},
		{"eviction.maxPodGracePeriod", "", &c.Eviction.MaxPodGracePeriod,
			"How long a pod that is evicted for a soft threshold may take to end at most."},
		{"eviction.pressureTransitionPeriod", "", &c.Eviction.PressureTransitionPeriod,
			"How long the Node shows pressure after it was last seen."},
		{"server.bindAddress", "server-bind-address", &c.Server.BindAddress,
			"Where the kubelet's API is served, over TLS and with authentication: kubectl logs, exec, attach,\nport-forward and top need it. Port 0 takes a free one. Empty: not at all. Without a kubeconfig it is\nserved on a loopback address only. See docs/kubectl.md."},
		{"server.clientCAFile", "client-ca-file", &c.Server.ClientCAFile,
			"Certificates of the authorities whose client certificates are accepted: that of the cluster, by which\nthe API server shows who it is. Read again when it changes. Empty: bearer tokens only. Without a\nkubeconfig, every client with such a certificate may do everything."},
		{"server.tlsCertFile", "tls-cert-file", &c.Server.TLSCertFile,
			"Certificate of the server, with intermediate ones after it. Read again when it changes. Empty: see\nrequestCertificate."},
		{"server.tlsPrivateKeyFile", "tls-private-key-file", &c.Server.TLSPrivateKeyFile,
			"Key of that certificate."},
		{"server.requestCertificate", "", &c.Server.RequestCertificate,
			"Request the certificate from the cluster (signer kubernetes.io/kubelet-serving), and renew it. Each request\nmust be approved; until then connections are refused. Otherwise, and without tlsCertFile, the\ncertificate is self-signed: the API server must then not verify it."},
	}
	for _, s := range alerting.Settings(&c.Rules) {
		list = append(list, setting(s))
	}
	for _, s := range c.Machine.Settings() {
		list = append(list, setting{"machine." + s.Name, "", s.Value, s.Doc})
	}
	return append(list,
		setting{"guard.enabled", "", &c.Guard.Enabled,
			"Judge by evidence how healthy statusd and its node are: locks, lease, statuses that are not in the API, sources of pods,\nruntime, disk, certificate. statusd never restarts itself. See docs/guard.md."},
		setting{"guard.nodeCondition", "", &c.Guard.NodeCondition,
			"Keep the condition KubeletHealthy of the Node, if there is an API server."},
		setting{"guard.events", "", &c.Guard.Events, "Write Events of the Node: KubeletUnhealthy, KubeletHealthy."},
	)
}

// AddFlags defines a flag for each setting that has one. Its default is the config's
// value, and parsing it changes the config: bind a config that a file was read into, and
// flags override the file.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	daemon.AddFlags(daemon.Settings(settings(c)), flags)
}

// WriteDefault writes a config file in which everything is as it is by default, and each
// field says what it is for.
func WriteDefault(w io.Writer) error {
	c := Default()
	return daemon.WriteConfig(w, "The configuration of statusd. Everything here is the default; keep what you change.", daemon.Settings(settings(&c)))
}
