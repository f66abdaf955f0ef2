package queryapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/unixsocket"
	"github.com/statusd/statusd/internal/view"
)

// Limits on what a client reads.
const (
	maxAnswer = 256 << 20
	maxLine   = 16 << 20
)

// Client queries a [Server]. Its errors are connection errors, or the server's answers as
// *apierrors.StatusError.
type Client struct {
	http *http.Client
	base string
}

// NewClient makes a client of the server at an address such as http://127.0.0.1:10265.
func NewClient(address string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("api: server: %w", err)
	}
	if u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("api: server %q: want an address such as http://127.0.0.1:10265", address)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{}}, base: "http://" + u.Host}, nil
}

// NewSocketClient makes a client of the server that listens on a Unix socket.
func NewSocketClient(path string) *Client {
	return &Client{base: "http://localhost", http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return unixsocket.Dial(ctx, path) },
	}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ListOptions limit a list. The zero value is all pods that are there.
type ListOptions struct {
	Namespace, State string
	Gone             bool
}

// Pods returns a summary of each pod.
func (c *Client) Pods(ctx context.Context, o ListOptions) (list view.PodList, err error) {
	query := url.Values{}
	for name, value := range map[string]string{"namespace": o.Namespace, "state": o.State} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if o.Gone {
		query.Set("gone", "true")
	}
	return list, c.get(ctx, "/apis/v1/pods?"+query.Encode(), &list)
}

// Pod returns everything that is known of a pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (detail view.PodDetail, err error) {
	return detail, c.get(ctx, "/apis/v1/pods/"+url.PathEscape(namespace)+"/"+url.PathEscape(name), &detail)
}

// Node returns everything that is known of the node.
func (c *Client) Node(ctx context.Context) (detail view.NodeDetail, err error) {
	return detail, c.get(ctx, "/apis/v1/node", &detail)
}

// Audit returns the audit of the node.
func (c *Client) Audit(ctx context.Context) (report audit.Report, err error) {
	return report, c.get(ctx, "/apis/v1/audit", &report)
}

// Guard returns how healthy the kubelet is.
func (c *Client) Guard(ctx context.Context) (report guard.Report, err error) {
	return report, c.get(ctx, "/apis/v1/guard", &report)
}

// Alerts returns the alerts of the node, in the order in which they are shown.
func (c *Client) Alerts(ctx context.Context) (list AlertList, err error) {
	return list, c.get(ctx, "/apis/v1/alerts", &list)
}

// Silences returns the silences of alerts.
func (c *Client) Silences(ctx context.Context) (list SilenceList, err error) {
	return list, c.get(ctx, "/apis/v1/silences", &list)
}

// AddSilence stores a silence. The server takes it on its Unix socket only.
func (c *Client) AddSilence(ctx context.Context, s alert.Silence) (stored alert.Silence, err error) {
	data, err := json.Marshal(s)
	if err != nil {
		return stored, fmt.Errorf("api: encode the silence: %w", err)
	}
	return stored, c.do(ctx, http.MethodPost, "/apis/v1/silences", bytes.NewReader(data), &stored)
}

// ExpireSilence ends a silence. The server takes it on its Unix socket only.
func (c *Client) ExpireSilence(ctx context.Context, id string) error {
	var status metav1.Status
	return c.do(ctx, http.MethodDelete, "/apis/v1/silences/"+url.PathEscape(id), nil, &status)
}

// Event is one event of a watch.
type Event struct {
	// Kind is pod, gone, node, reset, synced or detail.
	Kind string
	// ID is the revision from which a watch continues after this event; it may be empty.
	ID string
	// Data is JSON: a PodSummary, a GonePod, a NodeDetail or a PodDetail.
	Data []byte
}

// ErrEnded: the server has ended a watch. It can be resumed from the ID of the last event.
var ErrEnded = errors.New("the watch has ended")

// Watch returns events until ctx ends or the connection is lost; the last pair has the error. Since is
// the ID of an event or the revision of a list, empty to begin with a list; pod, as NAMESPACE/NAME, is
// empty for all pods.
func (c *Client) Watch(ctx context.Context, since, pod string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		query := url.Values{}
		if since != "" {
			query.Set("since", since)
		}
		if pod != "" {
			query.Set("pod", pod)
		}
		body, err := c.open(ctx, http.MethodGet, "/apis/v1/watch?"+query.Encode(), nil)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer body.Close()
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxLine)
		var e Event
		for lines.Scan() {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
			case "id":
				e.ID = value
			case "event":
				e.Kind = value
			case "data":
				e.Data = []byte(value)
			case "":
				if e.Kind != "" && !yield(e, nil) {
					return
				}
				e = Event{}
			}
		}
		if err := lines.Err(); err != nil && ctx.Err() == nil {
			yield(Event{}, fmt.Errorf("%w: %w", ErrEnded, err))
			return
		}
		if ctx.Err() == nil {
			yield(Event{}, ErrEnded)
			return
		}
		yield(Event{}, ctx.Err())
	}
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, nil, into)
}

func (c *Client) do(ctx context.Context, method, path string, send io.Reader, into any) error {
	body, err := c.open(ctx, method, path, send)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("api: decode the answer: %w", err)
	}
	return nil
}

// open asks, and returns the body of a good answer.
func (c *Client) open(ctx context.Context, method, path string, send io.Reader) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, send)
	if err != nil {
		return nil, err
	}
	if send != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	var failure metav1.Status
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(text, &failure) != nil || failure.Kind != "Status" {
		return nil, fmt.Errorf("api: got %s and no Status: %.100q", response.Status, text)
	}
	return nil, &apierrors.StatusError{ErrStatus: failure}
}
