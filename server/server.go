package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout bounds the TLS handshake and the header of each request: a connection that does not
	// say who it is goes soon.
	headerTimeout = 10 * time.Second
	idleTimeout   = 90 * time.Second
	// maxHeaderBytes is that of the kubelet: commands are part of the URL.
	maxHeaderBytes = 1 << 20
)

// Server is the kubelet's API. See the package comment.
type Server struct {
	options     Options
	log         *slog.Logger
	who         *authenticator
	may         *authorizer
	connections *connections
	rates       rates
	requests    calls
}

// New makes a server. It serves nothing until [Server.Run].
func New(options Options) (*Server, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	options.setDefaults()
	s := &Server{options: options, log: options.Logger, connections: newConnections(options.Listener)}
	if options.Client != nil {
		s.who = newAuthenticator(options.ClientCA, options.Client.AuthenticationV1().TokenReviews())
		s.may = newAuthorizer(options.NodeName, options.Client.AuthorizationV1().SubjectAccessReviews())
	} else {
		s.who = newAuthenticator(options.ClientCA, nil)
		s.may = newAuthorizer(options.NodeName, nil)
	}
	return s, nil
}

// Run serves until ctx ends, then closes all connections, ends the commands that clients have started, and
// returns once all of that is over.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.counted(s.handler()),
		TLSConfig:         s.tlsConfig(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       s.connections.context,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // clients cause these as they like
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(s.connections, "", "") }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("server: serve %s: %w", s.options.Listener.Addr(), err)
	case <-ctx.Done():
		err = server.Close()
		if served := <-served; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}
	s.connections.closeAll()
	s.requests.finish()
	return err
}

// counted lets Run wait for requests: net/http does not wait for those that have taken over their connection.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !s.requests.begin() {
			return
		}
		defer s.requests.end()
		next.ServeHTTP(w, request)
	})
}

func (s *Server) tlsConfig() *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: s.options.Certificate.GetCertificate,
		NextProtos:     []string{"h2", "http/1.1"},
	}
	if s.options.ClientCA == nil {
		return config
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := config.Clone()
		current.GetConfigForClient = nil
		// A certificate of another authority is not refused here, but where the request gets an answer that says so.
		current.ClientAuth = tls.RequestClientCert
		current.ClientCAs = s.options.ClientCA.Pool()
		return current, nil
	}
	return config
}
