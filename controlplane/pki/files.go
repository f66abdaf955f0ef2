package pki

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/statusd/statusd/controlplane/datadir"
)

// ServerFiles issues a server certificate for the loopback address and for the names by which pods
// know the API server, and returns where certificate and key lie.
func (a *Authority) ServerFiles(serviceAddress net.IP) (certificateFile, keyFile string, err error) {
	pair, err := a.IssueServer(
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceAddress})
	if err != nil {
		return "", "", err
	}
	certificateFile, keyFile = filepath.Join(a.dir, "server.crt"), filepath.Join(a.dir, "server.key")
	if err := datadir.WriteFile(keyFile, pair.Key, 0o600); err != nil {
		return "", "", err
	}
	if err := datadir.WriteFile(certificateFile, pair.Certificate, 0o600); err != nil {
		return "", "", err
	}
	return certificateFile, keyFile, nil
}

// ServiceAccountKey returns the file of the key that signs service account tokens, made once: tokens
// stay valid across restarts.
func (a *Authority) ServiceAccountKey() (string, error) {
	path := filepath.Join(a.dir, "service-account.key")
	_, err := os.Stat(path)
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("service account key: %w", err)
	}
	_, keyPEM, err := newKey()
	if err != nil {
		return "", fmt.Errorf("service account key: %w", err)
	}
	if err := datadir.WriteFile(path, keyPEM, 0o600); err != nil {
		return "", err
	}
	return path, nil
}
