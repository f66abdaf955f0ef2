package main

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statusd/statusd/test/controlplane"
)

// proxy is between a kubelet and the API server. It acts as the node, counts requests, and can delay each.
type proxy struct {
	server *httptest.Server
	delay  time.Duration

	mu     sync.Mutex
	counts map[string]int // of the requests about statuses, by method, and of lists of pods as LIST
	log    io.Writer      // nil: none
}

// requestLog is the file of -log: a line for each request about a pod, with the time, the node, the method, the path and the body.
var requestLog io.Writer

// aPod is the path of one pod, or of its status.
var aPod = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/pods/[^/]+(/status)?$`)

func newProxy(api *controlplane.Process, node string, delay time.Duration) (*proxy, error) {
	config, err := api.NodeConfig(node)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(api.Address())
	if err != nil {
		return nil, err
	}
	p := &proxy{delay: delay, counts: map[string]int{}, log: requestLog}
	p.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			p.count(r.In)
			p.note(node, r.Out)
			r.SetURL(server)
		},
		FlushInterval: -1, // watches
		Transport:     transport,
		ModifyResponse: func(*http.Response) error {
			time.Sleep(p.delay)
			return nil
		},
	})
	p.server.EnableHTTP2 = true
	p.server.TLS = &tls.Config{}
	p.server.StartTLS()
	return p, nil
}

func (p *proxy) count(r *http.Request) {
	method := r.Method
	switch {
	case aPod.MatchString(r.URL.Path):
	case method == http.MethodGet && r.URL.Path == "/api/v1/pods" && !r.URL.Query().Has("watch"):
		method = "LIST"
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[method]++
}

// note writes a request about a pod to the log.
func (p *proxy) note(node string, r *http.Request) {
	if p.log == nil || !aPod.MatchString(r.URL.Path) {
		return
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // a request that breaks off fails at the server
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.log, "%s %s %s %s %s\n", time.Now().Format("15:04:05.000"), node, r.Method, r.URL.Path, body)
}

// taken returns the counts since the last call.
func (p *proxy) taken() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.counts
	p.counts = map[string]int{}
	return counts
}

func (p *proxy) writeKubeconfig(file string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   p.server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}),
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	return clientcmd.WriteToFile(*config, file)
}

func (p *proxy) close() {
	p.server.CloseClientConnections()
	p.server.Close()
}
