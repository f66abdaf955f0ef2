package guardsetup

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/hostproc"
)

// In a pod the host is mounted below a directory: files of the host are looked for there, and links are followed as the host does.
func TestFilesOfTheGuard_AreThoseOfTheHost(t *testing.T) {
	root := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	expires := time.Now().Add(time.Hour).Truncate(time.Second)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: expires}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, data []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("/pki/client-2026.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	if err := os.Symlink("/pki/client-2026.pem", filepath.Join(root, "pki/current.pem")); err != nil { // as the kubelet links it
		t.Fatal(err)
	}
	write("/etc/kubelet.conf", []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {user: u}}], users: [{name: u, user: {client-certificate: /pki/current.pem}}]}"))
	write("/log/kubelet.log", []byte("the last line\n"))
	c := Default()
	c.Enabled, c.Unit, c.RuntimeUnit, c.HealthzURL, c.LogFile = true, "", "", "", "/log/kubelet.log"
	for _, file := range []string{"/pki/current.pem", "/etc/kubelet.conf"} {
		c.CertificateFile = file
		o := Options{Node: "n1", StateDir: t.TempDir(), Process: hostproc.Finder{Root: root}}
		g, err := New(c, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.collector.Collect(t.Context()).Certificate; !got.Known || !got.Value.Equal(expires) {
			t.Errorf("certificateFile %s: got %+v, want that the certificate expires at %v", file, got, expires)
		}
		var log bytes.Buffer
		if err := parts(&c, &o, nil)[0].Write(t.Context(), &log); err != nil || log.String() != "the last line\n" {
			t.Errorf("logFile: got %q (%v), want the end of the host's file", log.String(), err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}
