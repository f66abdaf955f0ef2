package observer

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/rules/alerting"
)

// A setting is one field of the config: what it is called in the file and as a flag, and what it is for.
type setting daemon.Setting

// settings are those of a config, in the order of the file.
func settings(c *Config) []setting {
	list := append([]setting{
		{"apiVersion", "", &c.APIVersion, "Version of this file's format."},
		{"kind", "", &c.Kind, ""},
		{"nodeName", "node-name", &c.NodeName,
			"Name of the node. Empty: the environment variable NODE_NAME, or else the host name in lower case."},
		{"kubeconfig", "kubeconfig", &c.Kubeconfig,
			"How to reach the API server. Empty: as the service account of this pod, or else as the kubelet does\n(/etc/kubernetes/kubelet.conf, or kubeconfig in kubeletRoot)."},
		{"stateDir", "state-dir", &c.StateDir,
			"Where the history and what the audit has measured survive a restart. One observer at a time can use\nit."},
		{"hostRoot", "host-root", &c.HostRoot,
			"Where the root of the machine's file system is: /host, for example, if this runs in a container that has\nit mounted there. kubeletRoot, manifests and the machine's /proc and /sys are looked for below it."},
		{"kubeletRoot", "kubelet-root", &c.KubeletRoot,
			"The kubelet's --root-dir, with the directories of its pods."},
		{"manifests", "manifests", &c.Manifests,
			"The kubelet's staticPodPath: the directory of static pods. It need not exist."},
		{"machinePace", "", &c.MachinePace,
			"How often the machine (directories, mounts, control groups, processes) is looked at if nothing else has\nchanged."},
		{"criEndpoint", "cri-endpoint", &c.CRIEndpoint,
			"Where the container runtime serves CRI. none: there is no such runtime, as on a node of statusd run."},
		{"criPace", "cri-pace", &c.CRIPace,
			"How often the runtime's sandboxes and containers are listed if nothing else has changed. Where the\nruntime serves container events, they come at once, and lists are at least 10 s apart."},
		{"healthzBindAddress", "healthz-bind-address", &c.HealthzBindAddress,
			"Where /livez, /readyz, /metrics, the page and the query API are served, without authentication: keep it\non a loopback address. Port 0 takes a free one and logs it. Empty: not at all."},
		{"metricsBindAddress", "metrics-bind-address", &c.MetricsBindAddress,
			"Another address, which need not be a loopback one, where /livez, /readyz and /metrics are served and nothing\nelse: for the probes and scrapes of a pod. Empty: none."},
		{"querySocket", "", &c.QuerySocket,
			"Unix socket, of mode 0600, where the same is served; statusd audit and others ask there. Empty:\nstatusd.sock in stateDir. none: not at all."},
		{"shutdownTimeout", "shutdown-timeout", &c.ShutdownTimeout,
			"How long the observer may take to stop."},
		{"events", "events", &c.Events,
			"Write an Event when drift is found, is over or was repaired: about the pod, or about the Node. They are\nbounded: many at once become one, and at most 30 are written per minute. Needs the right to create\nand patch events."},
		{"nodeCondition", "node-condition", &c.NodeCondition,
			"Keep the condition StatusTruthful of the Node: True while what the API says is true. It is removed when\nthe observer ends in order. Needs the right to patch nodes/status."},
		{"log.format", "log-format", &c.Log.Format, "text or json, on standard error."},
		{"log.level", "log-level", &c.Log.Level, "debug, info, warn or error."},
		{"kubelet.podsSocket", "kubelet-pods-socket", &c.Kubelet.PodsSocket,
			"The kubelet's Pods API (feature gate PodsAPI), preferred where it exists: it has the statuses that the\nkubelet has decided. none: not used."},
		{"kubelet.url", "kubelet-url", &c.Kubelet.URL,
			"The kubelet's HTTPS endpoint, of which /pods is read if there is no Pods API. Empty: not used."},
		{"kubelet.caFile", "", &c.Kubelet.CAFile,
			"Certificates that the kubelet's is checked against. Empty: pki/kubelet.crt in kubeletRoot if there is one,\nwhich a kubelet writes that signs its own, or else the authority of the cluster."},
		{"kubelet.serverName", "", &c.Kubelet.ServerName,
			"Name in the kubelet's certificate. Empty: that of the node, which stock kubelets have in it."},
		{"kubelet.insecure", "", &c.Kubelet.Insecure,
			"Do not check the kubelet's certificate."},
		{"kubelet.certFile", "", &c.Kubelet.CertFile,
			"Client certificate for the kubelet. Empty: the token is used."},
		{"kubelet.keyFile", "", &c.Kubelet.KeyFile, "Key of that certificate."},
		{"kubelet.tokenFile", "", &c.Kubelet.TokenFile,
			"Bearer token for the kubelet. Empty, and no certFile: that of this pod's service account, or else the\nclient certificate of the kubeconfig, if that names it as a file."},
		{"kubelet.pace", "kubelet-pace", &c.Kubelet.Pace,
			"How often the kubelet is asked for its pods if nothing else has changed."},
		{"kubelet.process", "", &c.Kubelet.Process,
			"Name of the kubelet's process, as in /proc/PID/comm: k3s-server, for example, where the kubelet is part of it."},
		{"kubelet.pidFile", "", &c.Kubelet.PIDFile,
			"File with the process ID of the kubelet, below hostRoot. Empty: the kubelet is found by its name."},
		{"audit.delay", "", &c.Audit.Delay,
			"How long changes are collected before they are audited. An audit takes at most a tenth of a core,\nwhatever the delay is."},
		{"repair.kinds", "repair", &c.Repair.Kinds,
			"Kinds of drift that may be repaired: KubeletBehindRuntime, UnreportedRestart, RunningWithoutContainer,\nContainerWithoutPod. Everything else is left alone. See docs/observe.md."},
		{"repair.after", "", &c.Repair.After,
			"How long the kubelet must have been dead, with its lease stale, before anything is done in its place."},
		{"repair.budget", "", &c.Repair.Budget,
			"Repairs per hour, those that failed included."},
		{"repair.dryRun", "repair-dry-run", &c.Repair.DryRun,
			"Only say what would be repaired."},
	}, append(guardSettings(&c.Guard), machineSettings(&c.Machine)...)...)
	for _, s := range alerting.Settings(&c.Rules) {
		list = append(list, setting(s))
	}
	return list
}

// AddFlags defines a flag for each setting that has one. Its default is the config's
// value, and parsing it changes the config: bind a config that a file was read into, and
// flags override the file.
func (c *Config) AddFlags(flags *pflag.FlagSet) { daemon.AddFlags(daemon.Settings(settings(c)), flags) }

// WriteDefault writes a config file in which everything is as it is by default, and each
// field says what it is for.
func WriteDefault(w io.Writer) error {
	c := Default()
	return c.Write(w, "The configuration of statusd observe. Everything here is the default; keep what you change.")
}

// Write writes the config as a file in which each field says what it is for. The heading is its first line.
func (c *Config) Write(w io.Writer, heading string) error {
	return daemon.WriteConfig(w, heading, daemon.Settings(settings(c)))
}
