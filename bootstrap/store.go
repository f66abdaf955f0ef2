package bootstrap

import (
	"crypto/tls"
	"errors"
	"sync"

	"k8s.io/client-go/util/certificate"
)

var errStopped = errors.New("bootstrap: stopped, the certificate is not stored")

// manager is one of client-go that writes nothing once it has stopped: client-go's own does not wait for its
// goroutine, which replaces the newest certificate in several steps.
type manager struct {
	certificate.Manager
	store *closingStore
}

// Stop ends the requests of the manager, and waits for a certificate that is being stored.
func (m *manager) Stop() {
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
