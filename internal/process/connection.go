package process

import (
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Connection connects clients to the API server with credentials that are replaced while they run: requests and watches in
// flight continue unchanged, and each later request has the new credentials.
type Connection struct {
	current atomic.Pointer[connected]
}

type connected struct {
	config    *rest.Config
	transport http.RoundTripper
}

// NewConnection makes a connection with the credentials of a config. NewConnection sends no request.
func NewConnection(config *rest.Config) (*Connection, error) {
	c := &Connection{}
	return c, c.Replace(config)
}

// Replace has later requests use the credentials of the config, whose server must be the same.
func (c *Connection) Replace(config *rest.Config) error {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	if before := c.current.Swap(&connected{config, transport}); before != nil {
		utilnet.CloseIdleConnectionsFor(before.transport)
	}
	return nil
}

// RoundTrip implements [http.RoundTripper].
func (c *Connection) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.current.Load().transport.RoundTrip(request)
}

// Config returns the config of the credentials in use.
func (c *Connection) Config() *rest.Config { return c.current.Load().config }

// Clients is the config for clients: its transport is the connection, which has the credentials.
func (c *Connection) Clients() *rest.Config {
	clients := rest.AnonymousClientConfig(c.Config())
	if server, _, err := rest.DefaultServerUrlFor(clients); err == nil && !strings.Contains(clients.Host, "://") {
		clients.Host = server.String() // with its scheme, for which the TLS settings would count
	}
	clients.TLSClientConfig = rest.TLSClientConfig{}
	clients.Transport, clients.Dial = c, nil
	return clients
}

// Use is for [Credentials]: it takes over credentials for the same server, and reports whether they are for it.
func (c *Connection) Use(config *rest.Config) (bool, error) {
	if before := c.Config(); before.Host != config.Host || before.APIPath != config.APIPath {
		return false, nil
	}
	return true, c.Replace(config)
}
