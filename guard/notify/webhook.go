package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/internal/backoff"
)

// WebhookOptions configure a [Webhook]. URL is required.
type WebhookOptions struct {
	URL  string
	Node string
	// Client defaults to one without a timeout of its own: each request has one.
	Client *http.Client
	Logger *slog.Logger
}

// Message is the body of a request. Fields are only ever added.
type Message struct {
	Node    string           `json:"node"`
	Kind    guard.NoticeKind `json:"kind"`
	At      time.Time        `json:"at"`
	Message string           `json:"message"`
	guard.Verdict
	Unit     string `json:"unit,omitempty"`
	Withheld string `json:"withheld,omitempty"`
}

// Webhook sends a small JSON document for each notice that an operator should see, as a [guard.Output].
type Webhook struct {
	o       WebhookOptions
	log     *slog.Logger
	queue   chan Message
	dropped atomic.Int64
}

// NewWebhook makes the output. It sends nothing before Run.
func NewWebhook(o WebhookOptions) (*Webhook, error) {
	target, err := url.Parse(o.URL)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, fmt.Errorf("notify: webhook %q is no http or https URL", o.URL)
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Webhook{o: o, log: orDiscard(o.Logger), queue: make(chan Message, waiting)}, nil
}

// Notify implements [guard.Output].
func (w *Webhook) Notify(n guard.Notice) {
	if n.Kind == guard.NoticeReport {
		return
	}
	m := Message{Node: w.o.Node, Kind: n.Kind, At: n.At, Message: n.Message, Verdict: n.Report.Verdict, Unit: n.Report.Unit, Withheld: n.Report.Withheld}
	select {
	case w.queue <- m:
	default:
		w.dropped.Add(1)
	}
}

// Run sends until ctx ends.
func (w *Webhook) Run(ctx context.Context) error {
	defer w.o.Client.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-w.queue:
			if err := w.send(ctx, m); err != nil && ctx.Err() == nil {
				w.log.Warn("webhook not taken", "kind", m.Kind, "err", err, "dropped", w.dropped.Load())
			}
		}
	}
}

// errRefused is an answer that the same request will always get.
var errRefused = errors.New("refused")

func (w *Webhook) send(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := w.post(ctx, body)
		if err == nil || errors.Is(err, errRefused) || try == tries || !backoff.Sleep(ctx, retries.Random(try)) {
			return err
		}
	}
}

func (w *Webhook) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.o.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := w.o.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection is used again
	switch code := response.StatusCode; {
	case code < 300:
		return nil
	case code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout:
		return fmt.Errorf("%w: %s", errRefused, response.Status)
	default:
		return errors.New(response.Status)
	}
}
