package kubeletapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// stamp identifies a version of a file.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// reloaded is a value that is read from files, and again when one of them has changed. A change that cannot be
// read, such as a certificate whose key is not written yet, leaves the value as it was.
type reloaded[V any] struct {
	paths []string
	read  func() (V, error)
	log   *slog.Logger

	mu     sync.Mutex // guards what follows
	stamps []stamp    // of the value, or of the last failure
	value  V
}

func newReloaded[V any](log *slog.Logger, read func() (V, error), paths ...string) (*reloaded[V], error) {
	r := &reloaded[V]{paths: paths, read: read, log: log, stamps: make([]stamp, len(paths))}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.changed()
	var err error
	r.value, err = read()
	return r, err
}

// changed reports whether a file differs from when it was last called. The caller holds the lock.
func (r *reloaded[V]) changed() bool {
	any := false
	for i, path := range r.paths {
		if now := stampOf(path); now != r.stamps[i] {
			r.stamps[i], any = now, true
		}
	}
	return any
}

func (r *reloaded[V]) get() V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.changed() {
		return r.value
	}
	value, err := r.read()
	if err != nil {
		r.log.Warn("changed file not usable, the former content stays in use", "files", r.paths, "err", err)
		return r.value
	}
	r.log.Info("file reloaded", "files", r.paths)
	r.value = value
	return value
}

// Roots are the CA certificates in a file, reloaded when the file changes.
type Roots struct{ file *reloaded[*x509.CertPool] }

// NewRoots reads the file. The logger may be nil.
func NewRoots(path string, log *slog.Logger) (*Roots, error) {
	file, err := newReloaded(log, func() (*x509.CertPool, error) {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", path)
		}
		return pool, nil
	}, path)
	if err != nil {
		return nil, fmt.Errorf("server: client CA: %w", err)
	}
	return &Roots{file}, nil
}

// Pool returns the newest valid content of the file.
func (r *Roots) Pool() *x509.CertPool { return r.file.get() }

// A CertificateSource returns the certificate of a server. Call it for each connection.
type CertificateSource interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// KeyPair is a certificate and its key in files, reloaded when the files change.
type KeyPair struct{ files *reloaded[*tls.Certificate] }

// NewKeyPair reads the files. The logger may be nil.
func NewKeyPair(certificate, key string, log *slog.Logger) (*KeyPair, error) {
	files, err := newReloaded(log, func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, err
		}
		return &pair, nil
	}, certificate, key)
	if err != nil {
		return nil, fmt.Errorf("server: certificate: %w", err)
	}
	return &KeyPair{files}, nil
}

// GetCertificate implements [CertificateSource].
func (k *KeyPair) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.files.get(), nil
}

// errNoCertificate refuses connections until a requested certificate is there.
var errNoCertificate = errors.New("server: no certificate yet: its request is not approved and signed")
