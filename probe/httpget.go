package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// maxRedirects is where a chain of redirects ends, as for Go's default client.
const maxRedirects = 10

// newTransport makes the transport of all HTTP probes. It asks the container itself, not a
// proxy; takes its certificate as it is, since the pod's address is in none; and opens a
// connection for each probe, since a server that accepts no more is not healthy.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:        dial,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2:  true,
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
}

func (c *checker) checkHTTP(ctx context.Context, q question, action *v1.HTTPGetAction) answer {
	request, err := c.request(ctx, q, action)
	if err != nil {
		return undone(err)
	}
	client := http.Client{Transport: c.transport, CheckRedirect: stayOnHost, Timeout: q.timeout}
	response, err := client.Do(request)
	if err != nil {
		return failed("%v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	switch code := response.StatusCode; {
	case err != nil:
		// The kubelet ignores such a probe, so that a server that hangs in the middle of
		// an answer is never found out.
		return failed("reading the response body: %v", err)
	case code < http.StatusOK || code >= http.StatusBadRequest:
		// Without the body: it may hold what the readers of events should not see (#99425).
		return failed("HTTP probe failed with statuscode: %d", code)
	case code >= http.StatusMultipleChoices:
		return answer{result: success, warning: true, message: "Probe terminated redirects, Response body: " + string(body)}
	}
	return succeeded(string(body))
}

// stayOnHost follows redirects, but not to another host, whose health would say nothing of
// the container's. Such a redirect is itself the answer, and a good one.
func stayOnHost(next *http.Request, via []*http.Request) error {
	if next.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= maxRedirects {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

func (c *checker) request(ctx context.Context, q question, action *v1.HTTPGetAction) (*http.Request, error) {
	address, err := q.address(action.Host, action.Port)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(action.Path) // it may have a query
	if err != nil {
		target = &url.URL{Path: action.Path}
	}
	target.Scheme, target.Host = "http", address
	if action.Scheme != "" {
		target.Scheme = strings.ToLower(string(action.Scheme))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header = c.headers(action.HTTPHeaders)
	request.Host = request.Header.Get("Host")
	return request, nil
}

// headers are those of the spec, and defaults for two of them. An empty Accept asks for
// none to be sent.
func (c *checker) headers(wanted []v1.HTTPHeader) http.Header {
	header := make(http.Header)
	for _, h := range wanted {
		header.Add(h.Name, h.Value)
	}
	if _, set := header["User-Agent"]; !set {
		header.Set("User-Agent", c.userAgent)
	}
	if _, set := header["Accept"]; !set {
		header.Set("Accept", "*/*")
	} else if header.Get("Accept") == "" {
		header.Del("Accept")
	}
	return header
}
