package certmanager

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
)

// slowStore takes its time for each certificate.
type slowStore struct {
	certificate.Store
	updates atomic.Int32
	finish  chan struct{}
}

func (s *slowStore) Update(_, _ []byte) (*tls.Certificate, error) {
	s.updates.Add(1)
	<-s.finish
	return &tls.Certificate{}, nil
}

func TestAClosedStoreWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowStore{finish: make(chan struct{})}
		store := &closingStore{Store: slow}
		go func() {
			if _, err := store.Update(nil, nil); err != nil {
				t.Errorf("a certificate that came before the end is not stored: %v", err)
			}
		}()
		synctest.Wait()
		var closed atomic.Bool
		go func() {
			store.close()
			closed.Store(true)
		}()
		synctest.Wait()
		if closed.Load() {
			t.Error("the store is closed while a certificate is written")
		}
		close(slow.finish)
		synctest.Wait()
		if !closed.Load() {
			t.Error("the store is not closed though nothing is written any more")
		}
		if _, err := store.Update(nil, nil); !errors.Is(err, errStopped) || slow.updates.Load() != 1 {
			t.Errorf("after the end: %v, %d certificates written, want one", err, slow.updates.Load())
		}
	})
}

func TestAManagerThatHasStoppedStoresNothing(t *testing.T) {
	files, err := certificate.NewFileStore("test", t.TempDir(), t.TempDir(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(certificate.Config{
		ClientsetFn:      func(*tls.Certificate) (kubernetes.Interface, error) { return nil, errors.New("no server") },
		Template:         &x509.CertificateRequest{Subject: pkix.Name{CommonName: "test"}},
		SignerName:       certificates.KubeAPIServerClientKubeletSignerName,
		Usages:           []certificates.KeyUsage{certificates.UsageClientAuth},
		CertificateStore: files,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	m.Stop()
	if _, err := m.store.Update(nil, nil); !errors.Is(err, errStopped) {
		t.Errorf("got %v, want %v", err, errStopped)
	}
}
