package kubeletapi

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// writePair writes a certificate for a host, stamped with a time of its own.
func writePair(t *testing.T, certificate, key, host string, stamped time.Time) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{certificate: certPEM, key: keyPEM} {
		if path == "" {
			continue
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, stamped, stamped); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACertificateIsReadAgainWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	begin := time.Now().Add(-time.Hour)
	writePair(t, certificate, key, "first", begin)
	pair, err := NewKeyPair(certificate, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(host string) {
		t.Helper()
		shown, err := pair.GetCertificate(nil)
		if err != nil || shown.Leaf.VerifyHostname(host) != nil {
			t.Errorf("got a certificate for %v, %v; want %s", shown.Leaf.DNSNames, err, host)
		}
	}
	shows("first")
	writePair(t, certificate, key, "second", begin.Add(time.Minute))
	shows("second")
	writePair(t, certificate, "", "third", begin.Add(2*time.Minute)) // its key is not written yet
	shows("second")
	writePair(t, certificate, key, "third", begin.Add(3*time.Minute))
	shows("third")
	if err := os.Remove(certificate); err != nil {
		t.Fatal(err)
	}
	shows("third")
}

func TestTheClientCAIsReadAgainWhenItChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	begin := time.Now().Add(-time.Hour)
	writePair(t, file, "", "first", begin)
	roots, err := NewRoots(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := roots.Pool()
	writePair(t, file, "", "second", begin.Add(time.Minute))
	second := roots.Pool()
	if second.Equal(first) {
		t.Error("the pool is the one from before the change")
	}
	if err := os.WriteFile(file, []byte("half a certi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !roots.Pool().Equal(second) {
		t.Error("a file that is being written has taken the place of a good one")
	}
	if _, err := NewRoots(file, nil); err == nil {
		t.Error("a server begins with a client CA that it cannot read")
	}
}

func TestASelfSignedCertificateIsKeptWhileItServes(t *testing.T) {
	dir := t.TempDir()
	leaf := func(host string, addresses ...string) []byte {
		t.Helper()
		pair, err := SelfSigned(dir, host, addresses, nil)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := pair.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(addresses, host) {
			if err := shown.Leaf.VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
		return shown.Certificate[0]
	}
	first := leaf("node", "192.0.2.1")
	if string(leaf("node", "192.0.2.1")) != string(first) {
		t.Error("made again though it was good")
	}
	if string(leaf("node", "192.0.2.2")) == string(first) {
		t.Error("kept though the address is another one")
	}
	for _, name := range []string{selfSignedKey, selfSignedCertificate} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, selfSignedKey), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	leaf("node") // a pair that does not match is made again
}
