package probe

import (
	"context"
	"io"
	"net/http"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/httpget"
)

// newTransport makes the transport of all HTTP probes. Unlike lifecycle hooks, probes speak
// HTTP/2 if the server does, and ask for no compression.
func newTransport() *http.Transport {
	transport := httpget.NewTransport(dial)
	transport.ForceAttemptHTTP2, transport.DisableCompression = true, true
	return transport
}

func (c *checker) checkHTTP(ctx context.Context, q question, action *v1.HTTPGetAction) answer {
	request, err := httpget.NewRequest(ctx, action, q.container, q.podIP, c.userAgent)
	if err != nil {
		return undone(err)
	}
	client := http.Client{Transport: c.transport, CheckRedirect: httpget.StayOnHost, Timeout: q.timeout}
	response, err := client.Do(request)
	if err != nil {
		return failed("%v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	switch code := response.StatusCode; {
	case err != nil:
		// The kubelet ignores such a probe. It never detects a server that hangs in the
		// middle of a response.
		return failed("reading the response body: %v", err)
	case code < http.StatusOK || code >= http.StatusBadRequest:
		// Without the body: it may hold what the readers of events should not see (#99425).
		return failed("HTTP probe failed with statuscode: %d", code)
	case code >= http.StatusMultipleChoices:
		return answer{result: success, warning: true, message: "Probe terminated redirects, Response body: " + string(body)}
	}
	return succeeded(string(body))
}
