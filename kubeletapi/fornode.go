package kubeletapi

import (
	"context"
	"errors"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/process"
)

// nodeServer is the server of a node, with what renews its certificate.
type nodeServer struct {
	server    *Server
	requested *Requested // nil: the certificate is not requested
}

// ForNode creates the server for a node of package agent: set it as the option KubeletAPI. A program without the
// option does not link this package.
func ForNode(n inside.Serving) (inside.Server, error) {
	options := Options{
		NodeName: n.NodeName, Listener: n.Listener, Client: n.Client, Pods: n.Pods, Runtime: n.Runtime,
		Metrics: n.Metrics, ProbeMetrics: n.ProbeMetrics, Config: n.Config, Healthy: n.Healthy, Logger: n.Logger,
	}
	var err error
	if n.ClientCAFile != "" {
		if options.ClientCA, err = NewRoots(n.ClientCAFile, n.Logger); err != nil {
			return nil, err
		}
	}
	s := &nodeServer{}
	if options.Certificate, err = s.certificate(&n); err != nil {
		return nil, err
	}
	var clients *front
	if former, ok := n.Former.(*nodeServer); ok {
		clients = former.server.front
	}
	if s.server, err = newServer(options, clients); err != nil {
		return nil, err
	}
	return s, nil
}

// certificate is read from the files, else requested if the config says so, else self-signed.
func (s *nodeServer) certificate(n *inside.Serving) (_ CertificateSource, err error) {
	switch {
	case n.TLSCertFile != "":
		return NewKeyPair(n.TLSCertFile, n.TLSPrivateKeyFile, n.Logger)
	case n.RequestCertificate:
		s.requested, err = NewRequested(RequestOptions{
			Client: n.Client, NodeName: n.NodeName, Directory: n.Directory, Host: n.NodeName, Addresses: n.Addresses, Logger: n.Logger,
		})
		return s.requested, err
	}
	return SelfSigned(n.Directory, n.NodeName, n.Addresses(), n.Logger)
}

// Parts implements [inside.Server].
func (s *nodeServer) Parts() (parts []process.Part) {
	if s.requested != nil {
		parts = append(parts, process.Part{Name: "server certificate", Run: s.requested.Run})
	}
	return append(parts, process.Part{Name: "server", Run: s.run})
}

// run serves until ctx ends. At a reload it leaves the clients to the server of the next agent.
func (s *nodeServer) run(ctx context.Context) error {
	if err := s.server.serveUntil(ctx); err != nil || errors.Is(context.Cause(ctx), process.ErrReload) {
		return err
	}
	return s.server.front.stop()
}

// Close implements [inside.Server].
func (s *nodeServer) Close() error { return s.server.front.stop() }
