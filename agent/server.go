package agent

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/status"
)

// kubeletAPI has the parts of the kubelet's API, if it is served.
type kubeletAPI struct {
	listener net.Listener         // nil: not served
	server   inside.Server        // made of the listener
	former   inside.Server        // of the agent before in this process, whose clients the server takes over; nil: none
	probes   *prometheus.Registry // what /metrics/probes shows
}

// validate reports what is wrong with the values; joined means that there is an API server.
func (s *ServerConfig) validate(joined bool, wrong func(path, format string, args ...any)) {
	if s.BindAddress == "" {
		return
	}
	if !isAddress(s.BindAddress) {
		wrong("server.bindAddress", "%q: want IP:PORT, or :PORT for all addresses of the machine", s.BindAddress)
		return
	}
	if (s.TLSCertFile == "") != (s.TLSPrivateKeyFile == "") {
		wrong("server.tlsCertFile", "and tlsPrivateKeyFile go together: set both or none")
	}
	if s.RequestCertificate && s.TLSCertFile != "" {
		wrong("server.requestCertificate", "is set, and so is tlsCertFile; want one")
	}
	if joined || !s.isLoopback() {
		return
	}
	if s.ClientCAFile == "" {
		wrong("server.clientCAFile", "is empty: without a kubeconfig only a client certificate says who a client is; set it, or bindAddress to \"\"")
	}
	if s.RequestCertificate {
		wrong("server.requestCertificate", "needs kubeconfig")
	}
}

func isAddress(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil && (host == "" || net.ParseIP(host) != nil)
}

// isLoopback reports whether only this machine can connect.
func (s *ServerConfig) isLoopback() bool {
	host, _, err := net.SplitHostPort(s.BindAddress)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// openServer opens the port. Without an API server, clients cannot be authorized, so only loopback
// is served.
func (a *Agent) openServer() error {
	config := &a.config.Server
	if err := a.takeOver(); err != nil {
		a.log.Warn("server of the former config did not end in order", "err", err)
	}
	if a.kubelet.listener != nil || config.BindAddress == "" || a.client == nil && !config.isLoopback() {
		return nil
	}
	if a.options.KubeletAPI == nil {
		return errors.New("agent: server: server.bindAddress is set, and Options.KubeletAPI is nil: set it to kubeletapi.ForNode")
	}
	listener, err := process.Listen(config.BindAddress)
	if err != nil {
		return fmt.Errorf("agent: server: %w; choose another --server-bind-address, or port 0 for a free one, or \"\" for none", err)
	}
	a.kubelet.listener = listener
	return nil
}

// ServerAddress is the address of the kubelet's API, or empty if the API is not served.
func (a *Agent) ServerAddress() string { return process.AddressOf(a.kubelet.listener) }

func (a *Agent) serverPort() int32 {
	if a.kubelet.listener == nil {
		return 0
	}
	address, ok := a.kubelet.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return int32(address.Port)
}

// wireServer makes the server of the kubelet's API, if it is wanted.
func (a *Agent) wireServer() (err error) {
	if a.kubelet.listener == nil {
		return nil
	}
	config, shown := &a.config.Server, a.options.Shown
	if shown == nil {
		shown = func() any { return a.config.shown() }
	}
	a.kubelet.server, err = a.options.KubeletAPI(inside.Serving{
		NodeName: a.nodeName, Listener: a.kubelet.listener, Former: a.kubelet.former, Client: a.client, Pods: patientPods{reportedPods{a.table, a.manager}, a.dispatcher.allListed}, Runtime: a.runtime,
		Metrics: a.metrics, ProbeMetrics: a.kubelet.probes, Config: shown,
		Healthy:   func() error { a.alive(); return nil },
		Addresses: a.addresses, Directory: filepath.Join(a.config.StateDir, pkiDirectory),
		ClientCAFile: config.ClientCAFile, TLSCertFile: config.TLSCertFile, TLSPrivateKeyFile: config.TLSPrivateKeyFile,
		RequestCertificate: config.RequestCertificate, Logger: a.log,
	})
	if err == nil {
		a.options.Memory.left.server = nil // the new server has taken over its clients
	}
	return err
}

// listPatience is how long a request for a pod waits for the lists of pods after a start or a reload.
const listPatience = 5 * time.Second

// patientPods waits for a pod that may not be listed yet: after a start or a reload, no client is told that an existing pod does not exist.
type patientPods struct {
	inside.Pods
	listed <-chan struct{}
}

func (p patientPods) ByName(namespace, name string) (*v1.Pod, bool) {
	pod, ok := p.Pods.ByName(namespace, name)
	if ok {
		return pod, true
	}
	select {
	case <-p.listed:
	case <-time.After(listPatience):
	}
	return p.Pods.ByName(namespace, name)
}

// reportedPods are the pods of the table with the statuses that this node reports.
type reportedPods struct {
	table   *pods.Table
	manager *status.Manager
}

func (r reportedPods) All() []*v1.Pod {
	known := r.table.All()
	for i, pod := range known {
		known[i] = r.reported(pod)
	}
	return known
}

func (r reportedPods) ByUID(uid types.UID) (*v1.Pod, bool) {
	pod, ok := r.table.ByUID(uid)
	if !ok {
		return nil, false
	}
	return r.reported(pod), true
}

func (r reportedPods) ByName(namespace, name string) (*v1.Pod, bool) {
	pod, ok := r.table.ByName(namespace, name)
	if !ok {
		return nil, false
	}
	return r.reported(pod), true
}

func (r reportedPods) TranslateUID(uid types.UID) types.UID { return r.table.TranslateUID(uid) }

// reported keeps the API's status if this node has not reported a status yet.
func (r reportedPods) reported(pod *v1.Pod) *v1.Pod {
	shown := *pod
	if reported, ok := r.manager.GetPodStatus(pod.UID); ok {
		shown.Status = reported
	}
	return &shown
}

// shown returns the config for /configz, by the YAML names. It contains no secrets, only the names of files with secrets.
func (c Config) shown() map[string]any {
	all := map[string]any{}
	if text, err := yaml.Marshal(c); err == nil {
		_ = yaml.Unmarshal(text, &all)
	}
	return all
}
