package nodeclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// Credentials are those for the kubelet's server. All files are read again for each connection or request, because
// certificates and tokens are renewed.
type Credentials struct {
	// CertFile and KeyFile are a client certificate; both may be one file.
	CertFile, KeyFile string
	// TokenFile has a bearer token. While the kubelet is dead, any process of this machine may listen in its place: see [Credentials.CheckToken].
	TokenFile string
	// CAFile has the authorities of the server's certificate; the certificate itself (kubelet.crt) if the kubelet has signed it.
	CAFile string
	// Insecure: the server's certificate is not verified.
	Insecure bool
	// ServerName is the name in the server's certificate; empty: the host of the URL.
	ServerName string
}

// ErrTokenNeedsCA is why a token is not used.
var ErrTokenNeedsCA = errors.New("a token for the kubelet's server needs the CA of its certificate: anything may listen there while the kubelet is dead")

// CheckToken returns why a token must not be sent to a server that may be dead: the identity of the server is
// not verified.
func (c Credentials) CheckToken() error {
	if c.TokenFile != "" && c.Insecure {
		return ErrTokenNeedsCA
	}
	return nil
}

// Kubelet makes a client for the kubelet's server. Kubelet keeps one HTTP/1.1 connection, which serves one request at a time; a canceled request
// closes it.
func Kubelet(c Credentials) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure, ServerName: c.ServerName}
	if c.CAFile != "" {
		data, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("no certificate in %s", c.CAFile)
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
	var transport http.RoundTripper = &http.Transport{
		TLSClientConfig: config, MaxIdleConns: 1, IdleConnTimeout: 5 * time.Minute, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	if c.TokenFile != "" {
		transport = bearer{c.TokenFile, transport}
	}
	// The token is meant for the kubelet alone.
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
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
		return nil, fmt.Errorf("read bearer token: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return b.next.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of the underlying transport.
func (b bearer) CloseIdleConnections() {
	if t, ok := b.next.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}
