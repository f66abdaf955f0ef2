package stock

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statusd/statusd/test/controlplane"
)

// Proxy is between a client with a token and the API server. It passes requests on and shows each answer, with its
// request, which may be changed before the client gets it. Close it.
type Proxy struct {
	server    *httptest.Server
	transport *http.Transport
}

// NewProxy starts a proxy on the loopback interface.
func NewProxy(api *controlplane.Process, answer func(*http.Response)) (*Proxy, error) {
	server, err := url.Parse(api.Address())
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(api.Authority())
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", api.Authority())
	}
	p := &Proxy{transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	p.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		FlushInterval: -1, // watches
		Transport:     p.transport,
		ModifyResponse: func(r *http.Response) error {
			answer(r)
			return nil
		},
	})
	p.server.EnableHTTP2 = true
	p.server.StartTLS()
	return p, nil
}

// WriteKubeconfig writes a kubeconfig of a client of the proxy with that token.
func (p *Proxy) WriteKubeconfig(file, tokenFile string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   p.server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}),
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{TokenFile: tokenFile}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	return clientcmd.WriteToFile(*config, file)
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
	p.transport.CloseIdleConnections()
}
