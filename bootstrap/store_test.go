package bootstrap

import (
	"crypto/tls"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

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

// The doc comment promises that nothing is left running.
func TestAManagerThatHasStoppedStoresNothing(t *testing.T) {
	o := testOptions(t, "stopped")
	m, err := o.manager(t.Context(), func(*tls.Certificate) (kubernetes.Interface, error) { return nil, errors.New("no server") })
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	m.Stop()
	if _, err := m.store.Update(nil, nil); !errors.Is(err, errStopped) {
		t.Errorf("got %v, want %v", err, errStopped)
	}
}
