package endpoint

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/internal/alert/deliver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, o Options) *Endpoint {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func TestAnswersAreJudged(t *testing.T) {
	var code int
	header := http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(code)
		fmt.Fprint(w, "the\x1b[31m text")
	}))
	defer server.Close()
	e := open(t, Options{URL: server.URL})
	post := func(want int) error {
		code = want
		_, err := e.Post(t.Context(), "/x", nil, []byte("{}"))
		return err
	}
	if err := post(200); err != nil {
		t.Errorf("200: %v, want no error", err)
	}
	for _, code := range []int{400, 413, 422} {
		if refused := (*deliver.RefusedError)(nil); !errors.As(post(code), &refused) {
			t.Errorf("%d is not refused", code)
		}
	}
	for _, code := range []int{301, 307, 401, 403, 404, 429, 500, 503} {
		err := post(code)
		if refused := (*deliver.RefusedError)(nil); err == nil || errors.As(err, &refused) {
			t.Errorf("%d: %v, want an error that may pass", code, err)
		}
		if err != nil && strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("the error has the control characters of the answer: %q", err)
		}
	}
	header.Set("Retry-After", "17")
	if pause := (*deliver.WaitError)(nil); !errors.As(post(503), &pause) || pause.For != 17*time.Second {
		t.Errorf("got %v, want a pause of 17 s", post(503))
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed, with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	e := open(t, Options{URL: server.URL, BearerTokenFile: write(t, "token", "t")})
	if _, err := e.Post(t.Context(), "/", nil, nil); err == nil || !strings.Contains(err.Error(), "redirect") {
		t.Errorf("got %v, want an error that names the redirect", err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for r := strings.Repeat("x", 1<<16); ; {
			if _, err := io.WriteString(w, r); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	e := open(t, Options{URL: server.URL})
	answer, err := e.Post(t.Context(), "/", nil, nil)
	if err != nil || len(answer) != maxAnswer {
		t.Errorf("read %d bytes, %v; want %d of an endless answer", len(answer), err, maxAnswer)
	}
}

func TestCredentialsAreReadAgain(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer server.Close()
	token := write(t, "token", "one\n")
	e := open(t, Options{URL: server.URL, BearerTokenFile: token})
	for _, want := range []string{"one", "two"} {
		if err := os.WriteFile(token, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Post(t.Context(), "/", nil, nil); err != nil || got != "Bearer "+want {
			t.Errorf("sent %q, %v; want the token %q", got, err, want)
		}
	}
	basic := open(t, Options{URL: server.URL, Username: "u", PasswordFile: write(t, "password", "p")})
	if _, err := basic.Post(t.Context(), "/", nil, nil); err != nil || got != "Basic dTpw" {
		t.Errorf("sent %q, %v; want basic authentication", got, err)
	}
}

// authority makes certificates and returns the paths of its own, of a pair, and the pair.
func authority(t *testing.T, dir string) (ca, cert, key string, pair tls.Certificate) {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, err := x509.CreateCertificate(rand.Reader, template, template, &caKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"receiver"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, template, &leafKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, cert, key = put("ca.crt", "CERTIFICATE", caDER), put("tls.crt", "CERTIFICATE", leafDER), put("tls.key", "EC PRIVATE KEY", keyDER)
	if pair, err = tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	return ca, cert, key, pair
}

func TestTLSWithAClientCertificateAndAnAuthorityThatChanges(t *testing.T) {
	ca, cert, key, pair := authority(t, t.TempDir())
	content, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(content)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 {
			t.Error("the client shows no certificate")
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()

	otherDir := t.TempDir()
	file, _, _, _ := authority(t, otherDir) // of another authority at first
	e := open(t, Options{URL: server.URL, CAFile: file, CertFile: cert, KeyFile: key, ServerName: "receiver"})
	if _, err := e.Post(context.Background(), "/", nil, nil); err == nil {
		t.Error("a certificate of another authority was taken")
	}
	if err := os.Rename(ca, file); err != nil { // as a rotation does
		t.Fatal(err)
	}
	if _, err := e.Post(context.Background(), "/", nil, nil); err != nil {
		t.Errorf("after the change of the authority: %v", err)
	}
}

func TestWrongOptionsAreNamed(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{}, "url"},
		{Options{URL: "ftp://x"}, "http"},
		{Options{URL: "http://u:p@x"}, "credentials"},
		{Options{URL: "http://x?a=b"}, "query"},
		{Options{URL: "http://x", CAFile: "/ca"}, "https"},
		{Options{URL: "https://x", CertFile: "/c"}, "keyFile"},
		{Options{URL: "https://x", Username: "u"}, "passwordFile"},
		{Options{URL: "https://x", Username: "u", PasswordFile: "/p", BearerTokenFile: "/t"}, "one"},
		{Options{URL: "https://x", Timeout: -1}, "timeout"},
		{Options{URL: "https://x", BearerTokenFile: "/does/not/exist"}, "no such file"},
		{Options{URL: "https://x", CAFile: "/does/not/exist"}, "no such file"},
	} {
		if _, err := New(test.options); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want an error with %q", test.options, err, test.want)
		}
	}
}

// Whatever a receiver answers, the result is bounded and printable.
func FuzzAnswers(f *testing.F) {
	f.Add(200, "", "ok")
	f.Add(429, "99999999999999999999", "\x00\xff")
	f.Add(301, "Mon, 02 Jan 2006 15:04:05 GMT", strings.Repeat("é", 300))
	f.Fuzz(func(t *testing.T, code int, after, body string) {
		response := &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {after}}}
		err := judge(response, []byte(body), time.Unix(1, 0))
		if (err == nil) != (code >= 200 && code < 300) {
			t.Fatalf("code %d: %v", code, err)
		}
		if err == nil {
			return
		}
		if text := err.Error(); len(text) > 4*maxShown+100 || strings.ContainsAny(text, "\x00\x1b\n\r") {
			t.Fatalf("%q", text)
		}
		if pause := (*deliver.WaitError)(nil); errors.As(err, &pause) && pause.For < 0 {
			t.Fatalf("a pause of %v", pause.For)
		}
	})
}
