package kubeletapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

const (
	// headerTimeout bounds the TLS handshake and the header of each request: a connection that does not
	// say who it is goes soon.
	headerTimeout = 10 * time.Second
	idleTimeout   = 90 * time.Second
	// maxHeaderBytes equals the kubelet's: commands are part of the URL.
	maxHeaderBytes = 1 << 20
	// stopPatience is how long requests may take to end when the server stops: to kill a command, and to
	// write to its client that it was killed.
	stopPatience = 2 * time.Second
)

// errStopping is what clients read whose commands the server has ended because it stops.
var errStopping = errors.New("statusd is stopping or reloading on this node")

// Server serves the kubelet's API. See the package comment.
type Server struct {
	options Options
	log     *slog.Logger
	who     *authenticator
	may     *authorizer
	rates   rates
	handler http.Handler
	front   *front
}

// New creates a server. It serves nothing until [Server.Run].
func New(options Options) (*Server, error) { return newServer(options, nil) }

// newServer makes a server that takes over the connections of another one; nil: it has its own, of the listener.
func newServer(options Options, former *front) (*Server, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	options.setDefaults()
	if options.Containers != nil {
		options.Runtime = byName{containers: options.Containers, pods: options.Pods}
	}
	s := &Server{options: options, log: options.Logger, front: former}
	if options.Client != nil {
		s.who = newAuthenticator(options.ClientCA, options.Client.AuthenticationV1().TokenReviews())
		s.may = newAuthorizer(options.NodeName, options.Client.AuthorizationV1().SubjectAccessReviews())
	} else {
		s.who = newAuthenticator(options.ClientCA, nil)
		s.may = newAuthorizer(options.NodeName, nil)
	}
	s.handler = s.routes()
	if s.front == nil {
		s.front = newFront(options.Listener)
	}
	return s, nil
}

// Run serves until ctx ends, then ends the commands of clients, reports their end to the clients, closes all
// connections, and returns when all of this is done.
func (s *Server) Run(ctx context.Context) error {
	if err := s.serveUntil(ctx); err != nil {
		return err
	}
	return s.front.stop()
}

// serveUntil answers requests until ctx ends. Connections and requests go on after it.
func (s *Server) serveUntil(ctx context.Context) error {
	s.front.serve(s)
	select {
	case <-s.front.ended:
		return s.front.stop()
	case <-ctx.Done():
		return nil
	}
}

// protocols are the HTTP versions that TLS negotiates.
var protocols = []string{"h2", "http/1.1"}

// tlsConfig returns the TLS config of the next connection.
func (s *Server) tlsConfig() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.options.Certificate.GetCertificate, NextProtos: protocols}
	if s.options.ClientCA != nil {
		// A certificate of another authority is not refused here, but where the request gets an answer that says so.
		config.ClientAuth = tls.RequestClientCert
		config.ClientCAs = s.options.ClientCA.Pool()
	}
	return config
}
