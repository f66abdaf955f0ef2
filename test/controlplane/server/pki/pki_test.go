package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func ensure(t *testing.T, dir string) *Authority {
	t.Helper()
	authority, err := Ensure(dir, now)
	if err != nil {
		t.Fatalf("ensure authority: %v", err)
	}
	return authority
}

func TestAuthorityIsMadeOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir, now); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("load from an empty directory: got %v, want ErrNotExist", err)
	}
	first, second := ensure(t, dir), ensure(t, dir)
	if !bytes.Equal(first.Certificate(), second.Certificate()) {
		t.Error("the second start made a new authority: every kubeconfig handed out before is void")
	}
}

func TestCrashBetweenKeyAndCertificateLeavesNothingThatBlocks(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir)
	if err := os.Remove(filepath.Join(dir, authorityCertificate)); err != nil {
		t.Fatal(err)
	}
	if _, err := ensure(t, dir).IssueClient("admin"); err != nil {
		t.Errorf("issue after a crash: %v", err)
	}
}

func TestDamagedAuthorityIsAnErrorAndNeverReplaced(t *testing.T) {
	other := ensure(t, t.TempDir())
	otherKey, err := os.ReadFile(filepath.Join(other.dir, authorityKey))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"not PEM": []byte("garbage"), "empty": {}, "key of another": otherKey, "certificate for a key": other.Certificate(),
	} {
		dir := t.TempDir()
		before := ensure(t, dir).Certificate()
		if err := os.WriteFile(filepath.Join(dir, authorityKey), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Ensure(dir, now); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v, want an error that names %s", name, err, dir)
		}
		after, err := os.ReadFile(filepath.Join(dir, authorityCertificate))
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the authority was replaced behind the operator's back", name)
		}
	}
}

func TestExpiredAuthoritySaysSo(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir)
	_, err := Ensure(dir, now.Add(authorityLifetime+time.Hour))
	if err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("got %v, want an error that says expired", err)
	}
}

func TestServiceAccountKeyIsKept(t *testing.T) {
	authority := ensure(t, t.TempDir())
	var contents [2][]byte
	for i := range contents {
		path, err := authority.ServiceAccountKey()
		if err != nil {
			t.Fatalf("service account key: %v", err)
		}
		if contents[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(contents[0], contents[1]) {
		t.Error("the key changed with the second start: every token signed before is void")
	}
}

func TestKeysAreReadableByTheOwnerOnly(t *testing.T) {
	authority := ensure(t, t.TempDir())
	if _, _, err := authority.ServerFiles(net.IPv4(10, 0, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.ServiceAccountKey(); err != nil {
		t.Fatal(err)
	}
	keys, err := filepath.Glob(filepath.Join(authority.dir, "*.key"))
	if err != nil || len(keys) != 3 {
		t.Fatalf("got keys %v, %v, want 3", keys, err)
	}
	for _, key := range keys {
		if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, %v, want 0600", key, info.Mode().Perm(), err)
		}
	}
}

// peer is what the server saw of the client that a kubeconfig describes.
func peer(t *testing.T, authority *Authority, kubeconfig []byte) (user string, groups []string) {
	t.Helper()
	certificateFile, keyFile, err := authority.ServerFiles(net.IPv4(10, 0, 0, 1))
	if err != nil {
		t.Fatalf("server files: %v", err)
	}
	serving, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		t.Fatalf("load server files: %v", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.Certificate())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		user, groups = subject.CommonName, subject.Organization
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{serving}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
		Time: func() time.Time { return now },
	}
	server.StartTLS()
	defer server.Close()

	client := clientOf(t, kubeconfig)
	defer client.CloseIdleConnections()
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatalf("request with the kubeconfig: %v", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return user, groups
}

func clientOf(t *testing.T, kubeconfig []byte) *http.Client {
	t.Helper()
	pair, err := tls.X509KeyPair(field(t, kubeconfig, "client-certificate-data"), field(t, kubeconfig, "client-key-data"))
	if err != nil {
		t.Fatalf("client certificate: %v", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(field(t, kubeconfig, "certificate-authority-data"))
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: trusted, Time: func() time.Time { return now },
	}}}
}

func field(t *testing.T, kubeconfig []byte, name string) []byte {
	t.Helper()
	match := regexp.MustCompile(name + `: (\S+)`).FindSubmatch(kubeconfig)
	if match == nil {
		t.Fatalf("no %s in\n%s", name, kubeconfig)
	}
	content, err := base64.StdEncoding.DecodeString(string(match[1]))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return content
}

func TestKubeconfigsNameTheirBearer(t *testing.T) {
	authority := ensure(t, t.TempDir())
	admin, err := authority.AdminKubeconfig("https://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	node, err := authority.NodeKubeconfig("https://127.0.0.1:1", "edge-7.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kubeconfig  []byte
		user, group string
	}{
		{admin, "admin", "system:masters"},
		{node, "system:node:edge-7.example", "system:nodes"},
	} {
		user, groups := peer(t, authority, c.kubeconfig)
		if user != c.user || len(groups) != 1 || groups[0] != c.group {
			t.Errorf("the server sees user %q of %q, want %q of [%q]", user, groups, c.user, c.group)
		}
		if !bytes.Contains(c.kubeconfig, []byte("server: https://127.0.0.1:1\n")) {
			t.Errorf("no server address in\n%s", c.kubeconfig)
		}
	}
}

func TestNodeKubeconfigRefusesNamesThatNoNodeCanHave(t *testing.T) {
	authority := ensure(t, t.TempDir())
	for _, name := range []string{"", "Upper", "-dash", "dash-", "a..b", "a b", "a\nb", "a:b", strings.Repeat("a", 254)} {
		if _, err := authority.NodeKubeconfig("https://127.0.0.1:1", name); err == nil {
			t.Errorf("a kubeconfig was issued for node %q", name)
		}
	}
}

// Whom the second authority vouches for must not be a user of the cluster.
func TestSecondAuthorityIsAnotherAndKept(t *testing.T) {
	first := ensure(t, t.TempDir())
	second, err := first.Second("front-proxy", now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := first.Second("front-proxy", now)
	if err != nil || !bytes.Equal(second.Certificate(), again.Certificate()) {
		t.Errorf("the second start made another authority (%v)", err)
	}
	certificateFile, keyFile, err := second.ClientFiles("client", "front-proxy-client")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		authority *Authority
		trusted   bool
	}{"second": {second, true}, "first": {first, false}} {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(c.authority.Certificate())
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != c.trusted {
			t.Errorf("the %s authority: got %v, want trusted %t", name, err, c.trusted)
		}
	}
}
