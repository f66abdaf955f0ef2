package collect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// Credentials are those for the kubelet's server. All files are read again for each connection or request, because
// certificates and tokens are renewed.
type Credentials struct {
	// CertFile and KeyFile are a client certificate; both may be one file.
	CertFile, KeyFile string
	// TokenFile has a bearer token. It is sent only to a server that CAFile vouches for: while the kubelet is
	// dead, any process of this machine may listen in its place.
	TokenFile string
	// CAFile has the authorities of the server's certificate. Empty: it is not verified, as that of a kubelet is
	// self-signed by default.
	CAFile string
	// ServerName is the name in the server's certificate; empty: that of the URL.
	ServerName string
}

// ErrTokenNeedsCA is why a token is not used.
var ErrTokenNeedsCA = errors.New("collect: a token for the kubelet's server needs the CA of its certificate: anything may listen there while the kubelet is dead")

// ServerClient makes a client for the kubelet's server.
func ServerClient(c Credentials) (*http.Client, error) {
	if c.TokenFile != "" && c.CAFile == "" {
		return nil, ErrTokenNeedsCA
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.CAFile == "", ServerName: c.ServerName}
	if c.CAFile != "" {
		data, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("collect: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("collect: no certificate in %s", c.CAFile)
		}
	}
	if c.CertFile != "" {
		key := c.KeyFile
		if key == "" {
			key = c.CertFile
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.CertFile, key)
			return &pair, err
		}
	}
	var transport http.RoundTripper = &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 1, ForceAttemptHTTP2: true}
	if c.TokenFile != "" {
		transport = bearer{c.TokenFile, transport}
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect}, nil
}

// bearer adds a token.
type bearer struct {
	file string
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return b.next.RoundTrip(r)
}

// CloseIdleConnections is that of the transport below.
func (b bearer) CloseIdleConnections() {
	if t, ok := b.next.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}
