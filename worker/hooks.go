package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxHookBody bounds what is read of the answer to an httpGet hook; nobody looks at it.
const maxHookBody = 10 * 1024

// hookCall is one run of a hook of a running container.
type hookCall struct {
	pod       types.UID
	id        string
	container *v1.Container
	handler   *v1.LifecycleHandler
}

// run runs the hook until it is done or ctx ends.
func (w *Workers) run(ctx context.Context, call *hookCall) error {
	switch h := call.handler; {
	case h.Exec != nil:
		return w.execHook(ctx, call)
	case h.HTTPGet != nil:
		return w.httpHook(ctx, call)
	case h.Sleep != nil:
		return sleepHook(ctx, seconds(h.Sleep.Seconds))
	case h.TCPSocket != nil:
		return errors.New("tcpSocket is not supported as a lifecycle hook by Kubernetes; use exec, httpGet or sleep")
	}
	return errors.New("the hook has no action; set exec, httpGet or sleep")
}

func (w *Workers) execHook(ctx context.Context, call *hookCall) error {
	result, err := w.opts.Runtime.Exec(ctx, call.id, call.handler.Exec.Command)
	if err != nil {
		return fmt.Errorf("exec %q: %w", call.handler.Exec.Command, err)
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("exec %q exited with %d: %q", call.handler.Exec.Command, result.ExitCode, result.Output)
	}
	return nil
}

func sleepHook(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// httpHook asks once, and any answer is good, as with the kubelet.
func (w *Workers) httpHook(ctx context.Context, call *hookCall) error {
	request, err := w.hookRequest(ctx, call)
	if err != nil {
		return err
	}
	response, err := w.opts.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("httpGet hook: %w", err)
	}
	defer response.Body.Close()
	// Read to the end so that the connection can be closed in peace; the answer is not used.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxHookBody))
	return nil
}

func (w *Workers) hookRequest(ctx context.Context, call *hookCall) (*http.Request, error) {
	get := call.handler.HTTPGet
	host := get.Host
	if host == "" {
		pod, err := w.opts.Runtime.Pod(ctx, call.pod)
		if err != nil {
			return nil, fmt.Errorf("httpGet hook: address of the pod: %w", err)
		}
		if len(pod.IPs) == 0 {
			return nil, errors.New("httpGet hook: the pod has no address; set host")
		}
		host = pod.IPs[0]
	}
	port, err := portNumber(get.Port, call.container)
	if err != nil {
		return nil, fmt.Errorf("httpGet hook: %w", err)
	}
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	path, err := url.Parse(get.Path)
	if err != nil { // an odd path is still a path
		path = &url.URL{Path: get.Path}
	}
	path.Scheme, path.Host = scheme, net.JoinHostPort(host, strconv.Itoa(port))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("httpGet hook: %w", err)
	}
	for _, header := range get.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
		}
	}
	return request, nil
}

func portNumber(port intstr.IntOrString, container *v1.Container) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range container.Ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	number, err := strconv.Atoi(port.StrVal)
	if err != nil {
		return 0, fmt.Errorf("port %q is neither a number nor the name of a port of container %s", port.StrVal, container.Name)
	}
	return number, nil
}

// newHookClient makes the client for httpGet hooks. Each hook has a connection of its
// own, so that none is left when the hook is over.
func newHookClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			// A hook talks to a container of this node under an address, not a name.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.URL.Hostname() != via[0].URL.Hostname() || len(via) > 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}
