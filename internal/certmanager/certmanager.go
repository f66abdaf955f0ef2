// Package certmanager is the certificate manager of client-go, with an end: once it has stopped, it writes nothing.
package certmanager

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"
)

var errStopped = errors.New("the manager of the certificate has stopped, which is not stored")

// Manager requests and renews a certificate. The one of client-go does not wait for its goroutine when it stops, and that replaces
// the newest certificate in several steps.
type Manager struct {
	certificate.Manager
	store *closingStore
}

// New makes a manager that logs to a logger. New starts nothing. Ctx of the config is not used.
func New(config certificate.Config, log *slog.Logger) (*Manager, error) {
	store := &closingStore{Store: config.CertificateStore}
	config.CertificateStore = store
	// The manager keeps the context for its logger alone: a context that never ends saves a goroutine.
	logging := klog.NewContext(context.Background(), logr.FromSlogHandler(log.Handler()))
	config.Ctx = &logging
	m, err := certificate.NewManager(&config)
	if err != nil {
		return nil, err
	}
	return &Manager{m, store}, nil
}

// Stop ends the requests of the manager, and waits for a certificate that is being stored.
func (m *Manager) Stop() {
	m.Manager.Stop()
	m.store.close()
}

// closingStore stores certificates until it is closed.
type closingStore struct {
	certificate.Store
	writing sync.WaitGroup

	mu     sync.Mutex // guards closed
	closed bool
}

// Update implements [certificate.Store].
func (s *closingStore) Update(cert, key []byte) (*tls.Certificate, error) {
	if !s.begin() {
		return nil, errStopped
	}
	defer s.writing.Done()
	return s.Store.Update(cert, key)
}

func (s *closingStore) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.writing.Add(1)
	return true
}

// close returns when nothing is written any more.
func (s *closingStore) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.writing.Wait()
}
