package agent

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/server"
	"github.com/statusd/statusd/status"
)

// kubeletAPI is what the agent serves to the API server, if it does.
type kubeletAPI struct {
	listener  net.Listener      // nil: not served
	requested *server.Requested // nil: its certificate is not requested
	server    *server.Server
	probes    *prometheus.Registry // what /metrics/probes shows
}

func (k *kubeletAPI) parts() []daemon.Part {
	var parts []daemon.Part
	if k.requested != nil {
		parts = append(parts, daemon.Part{Name: "server certificate", Run: k.requested.Run})
	}
	if k.server != nil {
		parts = append(parts, daemon.Part{Name: "server", Run: k.server.Run})
	}
	return parts
}

func (k *kubeletAPI) close() error {
	if k.listener == nil {
		return nil
	}
	if err := k.listener.Close(); !errors.Is(err, net.ErrClosed) { // the server may have closed it
		return err
	}
	return nil
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

// openServer takes the port. Without an API server there is no authority over rights, so other
// machines are not served.
func (a *Agent) openServer() error {
	config := &a.config.Server
	if config.BindAddress == "" || a.client == nil && !config.isLoopback() {
		return nil
	}
	listener, err := daemon.Listen(config.BindAddress)
	if err != nil {
		return fmt.Errorf("agent: server: %w; choose another --server-bind-address, or port 0 for a free one, or \"\" for none", err)
	}
	a.kubelet.listener = listener
	return nil
}

// ServerAddress is where the kubelet's API is served, empty if it is not.
func (a *Agent) ServerAddress() string {
	if a.kubelet.listener == nil {
		return ""
	}
	return a.kubelet.listener.Addr().String()
}

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
	options := server.Options{
		NodeName:     a.nodeName,
		Listener:     a.kubelet.listener,
		Client:       a.client,
		Pods:         reportedPods{a.table, a.manager},
		Runtime:      a.runtime,
		Metrics:      a.metrics,
		ProbeMetrics: a.kubelet.probes,
		Config:       func() any { return a.config.shown() },
		Healthy:      func() error { a.alive(); return nil },
		Logger:       a.log,
	}
	if file := a.config.Server.ClientCAFile; file != "" {
		if options.ClientCA, err = server.NewRoots(file, a.log); err != nil {
			return err
		}
	}
	if options.Certificate, err = a.serverCertificate(); err != nil {
		return err
	}
	a.kubelet.server, err = server.New(options)
	return err
}

// serverCertificate is that of the files, else requested if the config says so, else self-signed.
func (a *Agent) serverCertificate() (server.CertificateSource, error) {
	config, directory := &a.config.Server, filepath.Join(a.config.StateDir, pkiDirectory)
	switch {
	case config.TLSCertFile != "":
		return server.NewKeyPair(config.TLSCertFile, config.TLSPrivateKeyFile, a.log)
	case config.RequestCertificate:
		requested, err := server.NewRequested(server.RequestOptions{
			Client: a.client, NodeName: a.nodeName, Directory: directory,
			Host: a.nodeName, Addresses: a.addresses, Logger: a.log,
		})
		a.kubelet.requested = requested
		return requested, err
	}
	return server.SelfSigned(directory, a.nodeName, a.addresses(), a.log)
}

// shown is the config as /configz shows it: by the names of the file. Nothing in it is secret: what is, the
// config only names the file of.
func (c *Config) shown() map[string]any {
	all := map[string]any{}
	for _, s := range settings(c) {
		parent, child, nested := strings.Cut(s.Path, ".")
		if !nested {
			all[s.Path] = s.Value
			continue
		}
		section, ok := all[parent].(map[string]any)
		if !ok {
			section = map[string]any{}
			all[parent] = section
		}
		section[child] = s.Value
	}
	return all
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

func (r reportedPods) ByName(namespace, name string) (*v1.Pod, bool) {
	pod, ok := r.table.ByName(namespace, name)
	if !ok {
		return nil, false
	}
	return r.reported(pod), true
}

func (r reportedPods) TranslateUID(uid types.UID) types.UID { return r.table.TranslateUID(uid) }

// reported leaves the status as the API had it if this node has not reported one yet.
func (r reportedPods) reported(pod *v1.Pod) *v1.Pod {
	shown := *pod
	if reported, ok := r.manager.GetPodStatus(pod.UID); ok {
		shown.Status = reported
	}
	return &shown
}
