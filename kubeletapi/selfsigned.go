package kubeletapi

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/statusd/statusd/internal/wholefile"
)

const (
	selfSignedCertificate = "server.crt"
	selfSignedKey         = "server.key"
	// renewSelfSigned is how long before its end a self-signed certificate is replaced at a start.
	renewSelfSigned = 30 * 24 * time.Hour
)

// SelfSigned returns a self-signed certificate for the host, kept in a directory. The certificate
// encrypts but proves no identity: an API server that verifies kubelets refuses it.
func SelfSigned(directory, host string, addresses []string, log *slog.Logger) (*KeyPair, error) {
	certificate, key := filepath.Join(directory, selfSignedCertificate), filepath.Join(directory, selfSignedKey)
	if usable(certificate, key, host, addresses, time.Now()) {
		return NewKeyPair(certificate, key, log)
	}
	var ips []net.IP
	for _, address := range addresses {
		if ip := net.ParseIP(address); ip != nil {
			ips = append(ips, ip)
		}
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, ips, nil)
	if err != nil {
		return nil, fmt.Errorf("server: self-signed certificate: %w", err)
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("server: self-signed certificate: %w", err)
	}
	// The key first: a start between the two writes finds a pair that does not match, and makes another.
	for _, file := range []struct {
		path    string
		content []byte
	}{{key, keyPEM}, {certificate, certPEM}} {
		if err := wholefile.Write(file.path, file.content); err != nil {
			return nil, fmt.Errorf("server: self-signed certificate: %w", err)
		}
	}
	return NewKeyPair(certificate, key, log)
}

// usable reports whether the pair is there, lasts, and is for this host.
func usable(certificate, key, host string, addresses []string, now time.Time) bool {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil || now.Add(renewSelfSigned).After(pair.Leaf.NotAfter) || pair.Leaf.VerifyHostname(host) != nil {
		return false
	}
	for _, address := range addresses {
		if pair.Leaf.VerifyHostname(address) != nil {
			return false
		}
	}
	return true
}
