package webhook

import (
	"context"
	"crypto/rand"
	_ "embed" // the schema
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/rules"
	"github.com/statusd/statusd/rules/endpoint"
	"github.com/statusd/statusd/rules/internal/deliver"
)

// Schema is the JSON schema of a [Message].
//
//go:embed schema.json
var Schema []byte

// version is that of the format.
const version = "1"

// Message is the body of a request.
type Message struct {
	Version string    `json:"version"`
	ID      string    `json:"id"`
	Node    string    `json:"node"`
	SentAt  time.Time `json:"sentAt"`
	Alerts  []Alert   `json:"alerts"`
}

// Alert is an alert of a message.
type Alert struct {
	api.Alert
	URL string `json:"url,omitempty"`
}

// Options are what an output is made of. Name and Endpoint.URL are required.
type Options struct {
	// Name of the webhook, in metrics and logs.
	Name     string
	Endpoint endpoint.Options
	// SecretFile has the key of the signature. Empty: requests are not signed.
	SecretFile string
	// ExternalURL is where users reach the page of this node; alerts link to it.
	ExternalURL string
	// Node is the name of this node.
	Node    string
	Metrics *deliver.Metrics
	Logger  *slog.Logger // nil: discards
}

// Output posts alerts to a receiver. Make it with [New].
type Output struct {
	options  Options
	endpoint *endpoint.Endpoint
	queue    *deliver.Queue
}

// New makes an output. It connects to nothing and starts nothing: see [Output.Run].
func New(options Options) (*Output, error) {
	if options.Name == "" {
		return nil, errors.New("webhook: no name")
	}
	receiver, err := endpoint.New(options.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if options.SecretFile != "" {
		if _, err := endpoint.Secret(options.SecretFile); err != nil {
			return nil, fmt.Errorf("webhook: secret: %w", err)
		}
	}
	o := &Output{options: options, endpoint: receiver}
	o.queue = deliver.New(deliver.Options{Output: o.Name(), Send: o.send, Timeout: receiver.Timeout(), Metrics: options.Metrics, Logger: options.Logger})
	return o, nil
}

// Name is webhook/NAME.
func (o *Output) Name() string { return "webhook/" + o.options.Name }

// Notify takes an alert. It never blocks. What the receiver had before a restart is not sent again.
func (o *Output) Notify(n rules.Notification) {
	if n.Again && n.Alert.State == api.AlertFiring {
		o.queue.Had(n)
		return
	}
	o.queue.Put(n)
}

// Run delivers until ctx ends. It may be called once.
func (o *Output) Run(ctx context.Context) error {
	defer o.endpoint.Close()
	return o.queue.Run(ctx)
}

func (o *Output) send(ctx context.Context, batch []api.Alert) error {
	body, err := json.Marshal(NewMessage(o.options.Node, o.options.ExternalURL, batch...))
	if err != nil {
		return &deliver.RefusedError{Err: err}
	}
	return Post(ctx, o.endpoint, o.options.SecretFile, body)
}

// NewMessage is a message with alerts of a node, which link to its page if there is an external URL.
func NewMessage(node, externalURL string, alerts ...api.Alert) Message {
	message := Message{Version: version, ID: newID(), Node: node, SentAt: time.Now(), Alerts: make([]Alert, len(alerts))}
	for i := range alerts {
		message.Alerts[i] = Alert{Alert: alerts[i], URL: deliver.Page(&alerts[i], externalURL)}
	}
	return message
}

// Post sends a body to a receiver, signed if there is a file with a secret.
func Post(ctx context.Context, receiver *endpoint.Endpoint, secretFile string, body []byte) error {
	header := http.Header{}
	if secretFile != "" {
		secret, err := endpoint.Secret(secretFile)
		if err != nil {
			return fmt.Errorf("webhook: secret: %w", err)
		}
		Sign(header, []byte(secret), body, time.Now())
	}
	_, err := receiver.Post(ctx, "", header, body)
	return err
}

func newID() string {
	id := make([]byte, 16)
	rand.Read(id) // never fails
	return hex.EncodeToString(id)
}
