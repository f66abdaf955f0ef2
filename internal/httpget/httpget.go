// Package httpget executes the httpGet actions of containers. Probes and lifecycle hooks have the
// same action and send the same request, apart from the User-Agent; the caller interprets the
// answer.
package httpget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxRedirects is where a chain of redirects ends, as for Go's default client.
const maxRedirects = 10

// NewTransport returns a transport for requests to containers. It uses no proxy; it verifies
// no certificate, since none contains the pod's address; and it opens one connection per
// request, so that none is left when the container ends. dial may be nil.
func NewTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:       dial,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}
}

// StayOnHost is the rule for redirects, a [http.Client.CheckRedirect]. It follows ten of
// them, but none to another host, which is not the container: such a redirect is itself the
// answer.
func StayOnHost(next *http.Request, via []*http.Request) error {
	if next.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= maxRedirects {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// NewRequest returns the request of an action of a container. It goes to the action's host,
// by default to podIP.
func NewRequest(ctx context.Context, action *v1.HTTPGetAction, container *v1.Container, podIP, userAgent string) (*http.Request, error) {
	address, err := Address(action.Host, action.Port, container, podIP)
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
	request.Header = headers(action.HTTPHeaders, userAgent)
	request.Host = request.Header.Get("Host")
	return request, nil
}

// headers returns the headers of the spec, with defaults for User-Agent and Accept. An empty Accept
// in the spec means that none is sent.
func headers(wanted []v1.HTTPHeader, userAgent string) http.Header {
	header := make(http.Header)
	for _, h := range wanted {
		header.Add(h.Name, h.Value)
	}
	if _, set := header["User-Agent"]; !set {
		header.Set("User-Agent", userAgent)
	}
	if _, set := header["Accept"]; !set {
		header.Set("Accept", "*/*")
	} else if header.Get("Accept") == "" {
		header.Del("Accept")
	}
	return header
}

// UserAgent returns the User-Agent of requests for this purpose: statusd-PURPOSE/VERSION.
func UserAgent(purpose, version string) string {
	if version == "" {
		return "statusd-" + purpose
	}
	return "statusd-" + purpose + "/" + version
}

// Address returns where a port of a container is reached: at host, by default at podIP.
func Address(host string, port intstr.IntOrString, container *v1.Container, podIP string) (string, error) {
	number, err := portNumber(port, container)
	if err != nil {
		return "", err
	}
	if host == "" {
		host = podIP
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

// portNumber returns the number of a port, which may be a number, the name of a port of the
// container, or a number in quotes.
func portNumber(port intstr.IntOrString, container *v1.Container) (int, error) {
	number := port.IntValue() // 0 for a name
	if port.Type == intstr.String {
		for _, p := range container.Ports {
			if p.Name == port.StrVal {
				number = int(p.ContainerPort)
			}
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("port %q is neither a port number nor the name of a port of container %s", port.String(), container.Name)
	}
	return number, nil
}
