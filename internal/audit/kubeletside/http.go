package kubeletside

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
	sigsjson "sigs.k8s.io/json"

	"github.com/statusd/statusd/internal/nodeclient"
	"github.com/statusd/statusd/internal/text"
)

// httpClient asks for GET /pods. Only one goroutine uses it.
type httpClient struct {
	options Options
	url     string
	decoder *decoder
	client  *http.Client // nil before the first request, and after a failure
}

func newHTTPClient(o Options) *httpClient {
	return &httpClient{
		options: o,
		url:     strings.TrimSuffix(o.URL, "/") + "/pods",
		decoder: newDecoder(func(data []byte, pod *v1.Pod) error { return sigsjson.UnmarshalCaseSensitivePreserveInts(data, pod) }),
	}
}

// list asks for the pods. After a failure the next request makes a new connection, with the
// files of the certificates as they are then.
func (c *httpClient) list(ctx context.Context) (list, error) {
	body, fresh, err := c.get(ctx)
	if err != nil {
		c.close()
		return list{}, fmt.Errorf("GET %s: %w", c.url, err)
	}
	encoded, err := items(body)
	if err != nil {
		return list{}, fmt.Errorf("GET %s: %w", c.url, err)
	}
	pods, err := c.decoder.all(encoded)
	if err != nil {
		return list{}, fmt.Errorf("GET %s: a pod of the answer cannot be read: %w", c.url, err)
	}
	return list{from: c.url, pods: pods, fresh: fresh}, nil
}

// items splits a PodList. Valid JSON that is no PodList must not pass for one without pods.
func items(body []byte) ([][]byte, error) {
	var podList struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &podList); err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	if podList.Kind != "PodList" || podList.APIVersion != "v1" {
		return nil, fmt.Errorf("the answer is a %q of %q, not a PodList of v1: is this a kubelet?", cut(podList.Kind), cut(podList.APIVersion))
	}
	encoded := make([][]byte, len(podList.Items))
	for i, item := range podList.Items {
		encoded[i] = item
	}
	return encoded, nil
}

// get returns the body of the answer, and whether it came over a new connection.
func (c *httpClient) get(ctx context.Context) (body []byte, fresh bool, err error) {
	if c.client == nil {
		o := c.options
		c.client, err = nodeclient.Kubelet(nodeclient.Credentials{
			CAFile: o.CAFile, Insecure: o.Insecure, ServerName: o.ServerName, CertFile: o.CertFile, KeyFile: o.KeyFile, TokenFile: o.TokenFile,
		})
		if err != nil {
			return nil, false, err
		}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { fresh = !info.Reused },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, false, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, false, c.explain(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, false, refusal(response)
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, int64(c.options.MaxBytes)+1))
	if err != nil {
		return nil, false, c.explain(ctx, err)
	}
	if len(body) > c.options.MaxBytes {
		return nil, false, fmt.Errorf("the answer is larger than %d bytes", c.options.MaxBytes)
	}
	return body, fresh, nil
}

// close closes the connection.
func (c *httpClient) close() {
	if c.client != nil {
		c.client.CloseIdleConnections()
		c.client = nil
	}
}

// explain adds to an error of a request what a person needs to know.
func (c *httpClient) explain(ctx context.Context, err error) error {
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v: the kubelet hangs, is stopped or overloaded, or it waits for the API server, which it asks who may read its pods", c.options.Timeout)
	case errors.As(err, &unknown):
		return fmt.Errorf("the kubelet's certificate is not signed by the configured CA: configure the CA of the kubelet's serving certificate, kubelet.crt itself if the kubelet signed it: %w", unknown)
	case errors.As(err, &hostname):
		return fmt.Errorf("the kubelet's certificate is for another name: configure the server name: %w", hostname)
	case errors.As(err, &invalid):
		return fmt.Errorf("the kubelet's certificate is not valid: %w", invalid)
	}
	if request := (*url.Error)(nil); errors.As(err, &request) {
		return request.Err // without the URL, which the caller adds
	}
	return err
}

// refusal says what a status code means here.
func refusal(response *http.Response) error {
	start, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	said := cut(string(start))
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("%s: the kubelet does not accept the client certificate or the token: check that they are valid, and the kubelet's clientCAFile or webhook authentication", response.Status)
	case http.StatusForbidden:
		return fmt.Errorf("%s: the user needs the right get on nodes/pods (nodes/proxy before Kubernetes 1.33): %s", response.Status, said)
	}
	return fmt.Errorf("%s: %s", response.Status, said)
}

// cut shortens a text of the other side for a message.
func cut(s string) string { return text.Cut(text.Line(s), 200) }
