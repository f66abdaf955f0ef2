package scenes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/observe"
)

// clockAhead: between the observer and the API server is a proxy that changes the answers' Date, so that the node is ahead
// of the server. The clock of a machine is not for a test to change.
func clockAhead() Scene {
	const ahead = 2 * time.Minute
	var (
		other *Observer
		proxy *httptest.Server
	)
	return Scene{
		Name: "node's clock 2 minutes ahead", What: "a proxy before the API server sets the Date of each answer back",
		Expect:   []Drift{{Kind: observe.ClockSkew}},
		Observer: func(*Stage) *Observer { return other },
		Break: func(ctx context.Context, s *Stage) error {
			var err error
			if proxy, err = dateProxy(s.Node.API.AdminConfig(), -ahead); err != nil {
				return err
			}
			kubeconfig, err := s.proxyKubeconfig(proxy)
			if err != nil {
				return err
			}
			other, err = s.Another(ctx, "ahead", kubeconfig, "")
			return err
		},
		Mend: func(context.Context, *Stage) error {
			other.Close()
			proxy.CloseClientConnections()
			proxy.Close()
			return nil
		},
	}
}

// dateProxy forwards requests, with the credentials of their clients, and moves the answers' Date.
func dateProxy(config *rest.Config, by time.Duration) (*httptest.Server, error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(config.CAData)
	if config.CAFile != "" {
		content, err := os.ReadFile(config.CAFile)
		if err != nil {
			return nil, err
		}
		authorities.AppendCertsFromPEM(content)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		FlushInterval: -1, // watches
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}, ForceAttemptHTTP2: true},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
			return nil
		},
	}
	listener := httptest.NewUnstartedServer(proxy)
	listener.EnableHTTP2 = true
	listener.StartTLS()
	return listener, nil
}

// proxyKubeconfig is the observer's kubeconfig with the proxy in the place of the server.
func (s *Stage) proxyKubeconfig(proxy *httptest.Server) (string, error) {
	config, err := clientcmd.LoadFromFile(s.kubeconfig)
	if err != nil {
		return "", err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = proxy.URL
		cluster.CertificateAuthority = ""
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	}
	file := s.kubeconfig + ".proxy"
	return file, clientcmd.WriteToFile(*config, file)
}
