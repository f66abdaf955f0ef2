package agent

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/test/doors"
)

func TestWithoutAnAPIServerTheKubeletsAPIIsForLoopbackAndCertificates(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*ServerConfig)
		want   string
	}{
		{"the default", func(*ServerConfig) {}, ""},
		{"loopback without a client CA", func(s *ServerConfig) { s.BindAddress = "127.0.0.1:0" }, "server.clientCAFile"},
		{"no address", func(s *ServerConfig) { s.BindAddress = "here" }, "server.bindAddress"},
		{"a name", func(s *ServerConfig) { s.BindAddress = "localhost:10250" }, "server.bindAddress"},
		{"a certificate without its key", func(s *ServerConfig) { s.TLSCertFile = "/c" }, "server.tlsCertFile"},
		{"two certificates", func(s *ServerConfig) { s.TLSCertFile, s.TLSPrivateKeyFile, s.RequestCertificate = "/c", "/k", true }, "server.requestCertificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := testConfig(t, "alone")
			config.Server = ServerConfig{BindAddress: ":10250"}
			c.change(&config.Server)
			a, err := New(config, withProcesses(config, Options{}))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v, want an error about %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.ServerAddress() != "" {
				t.Errorf("served at %s", a.ServerAddress())
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWithoutAnAPIServerAClientNeedsACertificate(t *testing.T) {
	authority, err := doors.NewAuthority(pkix.Name{CommonName: "authority"})
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t, "alone")
	config.Server = ServerConfig{BindAddress: "127.0.0.1:0", ClientCAFile: filepath.Join(t.TempDir(), "ca.crt")}
	if err := os.WriteFile(config.Server.ClientCAFile, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ := run(t, config)
	pair, err := authority.Sign(doors.Certificate(pkix.Name{CommonName: "client"}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		certificates []tls.Certificate
		token        string
		want         int
	}{{nil, "", http.StatusUnauthorized}, {nil, "any", http.StatusUnauthorized}, {[]tls.Certificate{*pair}, "", http.StatusOK}} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: c.certificates}}
		request, err := http.NewRequest(http.MethodGet, "https://"+a.ServerAddress()+"/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			request.Header.Set("Authorization", "Bearer "+c.token)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		transport.CloseIdleConnections()
		if response.StatusCode != c.want {
			t.Errorf("%d certificates, token %q: got %s, want %d", len(c.certificates), c.token, response.Status, c.want)
		}
	}
}

// listing has no pods before they are listed.
type listing struct {
	inside.Pods
	listed chan struct{}
}

func (l listing) ByName(_, name string) (*v1.Pod, bool) {
	select {
	case <-l.listed:
		return &v1.Pod{}, name == "web"
	default:
		return nil, false
	}
}

// A command that is started right after a reload finds its pod; one for a pod that there is not is refused, also if the API
// server does not answer.
func TestPodThatIsNotListedYet_IsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listed := make(chan struct{})
		pods := patientPods{listing{listed: listed}, listed}
		begin := time.Now()
		if _, ok := pods.ByName("default", "web"); ok || time.Since(begin) != listPatience {
			t.Errorf("without lists: found %v after %s, want nothing after %s", ok, time.Since(begin), listPatience)
		}
		time.AfterFunc(time.Second, func() { close(listed) })
		begin = time.Now()
		if _, ok := pods.ByName("default", "web"); !ok || time.Since(begin) != time.Second {
			t.Errorf("with lists after a second: found %v after %s", ok, time.Since(begin))
		}
		begin = time.Now()
		if _, ok := pods.ByName("default", "other"); ok || time.Since(begin) > 0 {
			t.Errorf("a pod that there is not: found %v after %s, want nothing at once", ok, time.Since(begin))
		}
	})
}
