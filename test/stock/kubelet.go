package stock

import (
	_ "embed"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

//go:embed kubelet.yaml
var kubeletConfig string

// Kubelet is the stock kubelet of a node.
type Kubelet struct {
	Dir        string // of the node
	Launch     Launcher
	Binary     string
	NodeName   string
	Kubeconfig string
	// Authority is the file of the authority whose clients it knows and then asks the API server about, as it
	// does by default; empty: each client may do everything.
	Authority string
	// Group is the parent of the pods' control groups; empty: the root.
	Group string
	// Host is the address of the kubelet's API; empty: the loopback address. Port is the port.
	Host string
	Port int
	// HealthzPort is where it serves its health on the loopback interface; 0: nowhere.
	HealthzPort  int
	FeatureGates map[string]bool
	// Settings are more lines of its configuration.
	Settings string
	// Args are more arguments of its command line.
	Args []string

	process *Process
}

// Start runs the kubelet and does not wait for anything.
func (k *Kubelet) Start() error {
	authentication, authorization := "{anonymous: {enabled: false}, webhook: {enabled: false}}", "{mode: AlwaysAllow}"
	if k.Authority != "" {
		authentication, authorization = "{anonymous: {enabled: false}, x509: {clientCAFile: "+k.Authority+"}}", "{mode: Webhook}"
	}
	text := kubeletConfig + k.Settings
	if len(k.FeatureGates) > 0 {
		gates, err := json.Marshal(k.FeatureGates)
		if err != nil {
			return err
		}
		text += "featureGates: " + string(gates) + "\n"
	}
	group := k.Group
	if group == "" {
		group = `""`
	}
	config, err := writeConfig(k.Dir, "kubelet.yaml", text, map[string]string{
		"ADDRESS": k.host(), "PORT": strconv.Itoa(k.Port), "HEALTHZ": strconv.Itoa(k.HealthzPort), "GROUP": group,
		"AUTHENTICATION": authentication, "AUTHORIZATION": authorization,
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(k.Dir, "manifests"), 0o755); err != nil {
		return err
	}
	command := k.command(config)
	k.process, err = k.Launch("kubelet", command[0], command[1:]...)
	return err
}

// Command is what starts the kubelet on the node, once Start has written its configuration.
func (k *Kubelet) Command() []string { return k.command(filepath.Join(k.Dir, "kubelet.yaml")) }

func (k *Kubelet) command(config string) []string {
	return append([]string{k.Binary, "--config", config, "--kubeconfig", k.Kubeconfig, "--hostname-override", k.NodeName,
		"--root-dir", k.Root(), "--cert-dir", filepath.Join(k.Root(), "pki")}, k.Args...)
}

// Process is the kubelet's.
func (k *Kubelet) Process() *Process { return k.process }

// Root is the kubelet's directory.
func (k *Kubelet) Root() string { return filepath.Join(k.Dir, "disk", "kubelet") }

// Address is where it serves its API.
func (k *Kubelet) Address() string { return net.JoinHostPort(k.host(), strconv.Itoa(k.Port)) }

func (k *Kubelet) host() string {
	if k.Host == "" {
		return "127.0.0.1"
	}
	return k.Host
}

// ServingCertificate is the file with the kubelet's self-made certificate for its API.
func (k *Kubelet) ServingCertificate() string { return filepath.Join(k.Root(), "pki", "kubelet.crt") }

// PodsSocket is where it serves its Pods API, with the feature gate PodsAPI.
func (k *Kubelet) PodsSocket() string { return filepath.Join(k.Root(), "pods-api", "pods-api.sock") }
