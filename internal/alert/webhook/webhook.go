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

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/deliver"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/alert/engine"
)

// Schema is the JSON schema of a [Message].
//
//go:embed schema.json
var Schema []byte

// version is the version of the format.
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
	alert.Alert
	URL string `json:"url,omitempty"`
}

// Options configure an output. Name and Endpoint.URL are required.
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
	receiver *Receiver
	queue    *deliver.Queue
}

// Receiver takes messages: the one way by which alerts leave as webhooks, those of outputs and those of actions.
type Receiver struct {
	*endpoint.Endpoint
	secretFile string
}

// NewReceiver makes a receiver and reads its files once to check them. It opens no connection. Messages are signed if there is
// a file with a secret.
func NewReceiver(options endpoint.Options, secretFile string) (*Receiver, error) {
	to, err := endpoint.New(options)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if secretFile != "" {
		if _, err := endpoint.Secret(secretFile); err != nil {
			return nil, fmt.Errorf("webhook: secret: %w", err)
		}
	}
	return &Receiver{to, secretFile}, nil
}

// New makes an output. It connects to nothing and starts nothing: see [Output.Run].
func New(options Options) (*Output, error) {
	if options.Name == "" {
		return nil, errors.New("webhook: no name")
	}
	receiver, err := NewReceiver(options.Endpoint, options.SecretFile)
	if err != nil {
		return nil, err
	}
	o := &Output{options: options, receiver: receiver}
	o.queue = deliver.New(deliver.Options{Output: o.Name(), Send: o.send, Timeout: receiver.Timeout(), Metrics: options.Metrics, Logger: options.Logger})
	return o, nil
}

// Trouble returns why alerts do not reach the receiver, or "".
func (o *Output) Trouble() string { return o.queue.Trouble() }

// Name is webhook/NAME.
func (o *Output) Name() string { return "webhook/" + o.options.Name }

// Notify queues an alert. Notify never blocks. Alerts that the receiver had before a restart are not
// sent again.
func (o *Output) Notify(n engine.Notification) {
	if n.Again && n.Alert.State == alert.Firing {
		o.queue.Had(n)
		return
	}
	o.queue.Put(n)
}

// Run delivers until ctx ends. Run may be called once.
func (o *Output) Run(ctx context.Context) error {
	defer o.receiver.Close()
	return o.queue.Run(ctx)
}

func (o *Output) send(ctx context.Context, batch []alert.Alert) error {
	return o.receiver.Send(ctx, o.options.Node, o.options.ExternalURL, batch...)
}

// newMessage is a message with alerts of a node, which link to its page if there is an external URL.
func newMessage(node, externalURL string, alerts ...alert.Alert) Message {
	message := Message{Version: version, ID: newID(), Node: node, SentAt: time.Now(), Alerts: make([]Alert, len(alerts))}
	for i := range alerts {
		message.Alerts[i] = Alert{Alert: alerts[i], URL: deliver.Page(&alerts[i], externalURL)}
	}
	return message
}

// Send sends alerts of a node in one message. An error of type [deliver.RefusedError] means that the receiver refuses
// them; after any other error they may be sent again.
func (r *Receiver) Send(ctx context.Context, node, externalURL string, alerts ...alert.Alert) error {
	body, err := json.Marshal(newMessage(node, externalURL, alerts...))
	if err != nil {
		return &deliver.RefusedError{Err: err}
	}
	return r.post(ctx, body)
}

func (r *Receiver) post(ctx context.Context, body []byte) error {
	header := http.Header{}
	if r.secretFile != "" {
		secret, err := endpoint.Secret(r.secretFile)
		if err != nil {
			return fmt.Errorf("webhook: secret: %w", err)
		}
		Sign(header, []byte(secret), body, time.Now())
	}
	_, err := r.Endpoint.Post(ctx, "", header, body)
	return err
}

func newID() string {
	id := make([]byte, 16)
	rand.Read(id) // never fails
	return hex.EncodeToString(id)
}
