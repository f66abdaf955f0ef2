// Package gateway is a proxy between the agent and the API server that answers in the server's place, loses answers and
// tampers with watches, and records each request with what the server and the agent were answered.
//
//	agent ─► toxiproxy ─► gateway ─► API server
//	                         │
//	                      history
//
// It has the agent's credentials, and forwards a write to its end even if the agent is gone, so that its outcome is known.
package gateway

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/robustness/record"
)

// Gateway is an http.Handler.
type Gateway struct {
	server  string // URL
	client  *http.Client
	history *record.Writer
	rules   rules
	clients *x509.CertPool // authorities of the agent's certificate; nil: it needs none
}

// forwardFor is how long a request that is no watch may take at the server.
const forwardFor = 60 * time.Second

// New forwards to the server of the config, with its credentials. Clients, if there are any, are the authorities of the agent's certificate: while
// that is not valid, requests are answered 401, as an API server does.
func New(config *rest.Config, history *record.Writer, clients *x509.CertPool) (*Gateway, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Gateway{server: config.Host, client: client, history: history, rules: newRules(), clients: clients}, nil
}

// exchange is a request on its way.
type exchange struct {
	record.Record
	body  []byte
	watch bool
}

// read takes a request in.
func read(r *http.Request) (*exchange, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	x := &exchange{body: body, watch: r.URL.Query().Get("watch") != ""}
	x.Kind, x.Verb = record.Request, r.Method
	agent, _ := strings.CutPrefix(r.UserAgent(), "agent/")
	x.Agent, _ = strconv.Atoi(agent)
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api v1 namespaces NS pods NAME status
	switch {
	case len(segments) >= 6:
		x.Name = segments[5]
	case x.watch:
		x.Verb = "WATCH"
	case r.URL.Query().Get("limit") == "" && strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name="):
		x.Verb = "FIND"
	default:
		x.Verb = "LIST"
	}
	x.UID = uidOf(body)
	return x, nil
}

// uidOf is the UID that a merge patch, the options of a deletion or the test of a JSON patch names; empty if there is none.
func uidOf(body []byte) string {
	var named struct {
		Metadata      struct{ UID string }
		Preconditions struct{ UID string }
	}
	if json.Unmarshal(body, &named) == nil {
		return named.Metadata.UID + named.Preconditions.UID
	}
	var operations []struct {
		Op, Path string
		Value    any
	}
	if json.Unmarshal(body, &operations) != nil { // client-go's typed clients send protobuf
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if options, ok := object.(*metav1.DeleteOptions); ok && err == nil && options.Preconditions != nil && options.Preconditions.UID != nil {
			return string(*options.Preconditions.UID)
		}
		return ""
	}
	for _, o := range operations {
		if uid, ok := o.Value.(string); ok && o.Op == "test" && o.Path == "/metadata/uid" {
			return uid
		}
	}
	return ""
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, err := read(r)
	if err != nil {
		return // the agent has gone while it sent
	}
	rule, hit := Rule{Name: Unauthenticated, Code: http.StatusUnauthorized, Before: true}, true
	if g.valid(r) {
		rule, hit = g.rules.take(x)
	}
	x.Fault = rule.Name
	if !hit {
		x.Fault = ""
	}
	if hit && rule.Before {
		x.Sent = rule.Code
		g.history.Add(x.Record)
		rule.answer(w)
		return
	}
	ctx := r.Context()
	if !x.watch { // goes on when the agent has gone
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), forwardFor)
		defer cancel()
	}
	response, err := g.forward(ctx, r, x)
	if err != nil {
		x.Sent, x.Err = http.StatusBadGateway, err.Error()
		g.history.Add(x.Record)
		http.Error(w, "no answer of the server: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	x.Code, x.Sent = response.StatusCode, response.StatusCode
	if x.watch && response.StatusCode == http.StatusOK {
		g.history.Add(x.Record)
		g.relay(w, r, response)
		return
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		x.Sent, x.Err = http.StatusBadGateway, err.Error()
		g.history.Add(x.Record)
		http.Error(w, "the answer of the server was cut: "+err.Error(), http.StatusBadGateway)
		return
	}
	x.readAnswer(body)
	if hit {
		x.Sent = rule.Code
		g.history.Add(x.Record)
		rule.replace(w, response, body)
		return
	}
	g.history.Add(x.Record)
	send(w, response, body)
}

// Unauthenticated is the fault of requests that come with a certificate that is not valid.
const Unauthenticated = "client certificate expired"

// valid reports whether the agent's certificate is valid.
func (g *Gateway) valid(r *http.Request) bool {
	if g.clients == nil {
		return true
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	_, err := r.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: g.clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// forward sends the request on.
func (g *Gateway) forward(ctx context.Context, r *http.Request, x *exchange) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, r.Method, g.server+r.URL.RequestURI(), bytes.NewReader(x.body))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Accept", "Content-Type", "User-Agent"} {
		if value := r.Header.Get(name); value != "" {
			out.Header.Set(name, value)
		}
	}
	return g.client.Do(out)
}

// readAnswer notes the pod that the server has answered with.
func (x *exchange) readAnswer(body []byte) {
	if x.Verb != http.MethodPatch && x.Verb != http.MethodGet || x.Name == "" || x.Code >= 300 {
		return
	}
	pod := &v1.Pod{}
	if json.Unmarshal(body, pod) != nil { // it may be protobuf
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		decoded, ok := object.(*v1.Pod)
		if err != nil || !ok {
			return
		}
		pod = decoded
	}
	x.Facts, x.RV = record.FactsOf(pod), record.VersionOf(pod)
	if x.UID == "" {
		x.UID = string(pod.UID)
	}
}

// send answers as the server did.
func send(w http.ResponseWriter, response *http.Response, body []byte) {
	for name, values := range response.Header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(body) // the agent may have gone
}
