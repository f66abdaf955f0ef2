package pki

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
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
	return pair.Write(filepath.Join(a.dir, "server"))
}

// ClientFiles issues a client certificate and returns where it and its key lie: files of that name.
func (a *Authority) ClientFiles(name, user string, groups ...string) (certificateFile, keyFile string, err error) {
	pair, err := a.IssueClient(user, groups...)
	if err != nil {
		return "", "", err
	}
	return pair.Write(filepath.Join(a.dir, name))
}

// Write puts the pair into PREFIX.crt and PREFIX.key, which only the owner can read.
func (p KeyPair) Write(prefix string) (certificateFile, keyFile string, err error) {
	certificateFile, keyFile = prefix+".crt", prefix+".key"
	if err := datadir.WriteFile(keyFile, p.Key, 0o600); err != nil {
		return "", "", err
	}
	if err := datadir.WriteFile(certificateFile, p.Certificate, 0o600); err != nil {
		return "", "", err
	}
	return certificateFile, keyFile, nil
}

// Second is another authority, kept in a directory of that name beside the files of this one: whom it
// vouches for is not a user of the cluster.
func (a *Authority) Second(name string, now time.Time) (*Authority, error) {
	dir := filepath.Join(a.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return Ensure(dir, now)
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
