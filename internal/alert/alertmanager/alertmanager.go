package alertmanager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/deliver"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/alert/engine"
)

const (
	// defaultRepeat is below Alertmanager's resolve_timeout, which is 5 minutes by default.
	defaultRepeat = time.Minute
	// lives is how many repetitions may be missed before an alert expires.
	lives = 4
	// path is the path of the API below the address of an instance.
	path = "/api/v2/alerts"
)

// Options configure an output. Endpoint.URL is required.
type Options struct {
	// Endpoint is the address of one instance: the URL of the instance's page, with the route prefix.
	Endpoint endpoint.Options
	// ExternalURL is where users reach the page of this node; alerts link to it. Empty: they do not.
	ExternalURL string
	// Node is the name of this node.
	Node string
	// Repeat is when a firing alert is sent again; a minute if 0. It expires after four times that.
	Repeat time.Duration
	// Metrics count; nil: not.
	Metrics *deliver.Metrics
	Logger  *slog.Logger // nil: discards
}

// Output brings alerts to one instance of Alertmanager. Make it with [New].
type Output struct {
	options  Options
	name     string
	endpoint *endpoint.Endpoint
	queue    *deliver.Queue
}

// New makes an output. It connects to nothing and starts nothing: see [Output.Run].
func New(options Options) (*Output, error) {
	if options.Repeat < 0 {
		return nil, errors.New("alertmanager: Repeat is negative")
	}
	if options.Repeat == 0 {
		options.Repeat = defaultRepeat
	}
	receiver, err := endpoint.New(options.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("alertmanager: %w", err)
	}
	o := &Output{options: options, name: "alertmanager/" + receiver.Name(), endpoint: receiver}
	o.queue = deliver.New(deliver.Options{
		Output: o.name, Send: o.send, Repeat: options.Repeat, Timeout: receiver.Timeout(), Metrics: options.Metrics, Logger: options.Logger,
	})
	return o, nil
}

// Trouble returns why alerts do not reach the receiver, or "".
func (o *Output) Trouble() string { return o.queue.Trouble() }

// Name is alertmanager/HOST:PORT, with the route prefix if there is one.
func (o *Output) Name() string { return o.name }

// Notify takes an alert. Notify never blocks.
func (o *Output) Notify(n engine.Notification) { o.queue.Put(n) }

// Run delivers until ctx ends. Run may be called once.
func (o *Output) Run(ctx context.Context) error {
	defer o.endpoint.Close()
	return o.queue.Run(ctx)
}

func (o *Output) send(ctx context.Context, batch []alert.Alert) error {
	now := time.Now()
	alerts := make([]posted, len(batch))
	for i := range batch {
		alerts[i] = translate(&batch[i], o.options.Node, o.options.ExternalURL, now.Add(lives*o.options.Repeat))
	}
	body, err := json.Marshal(alerts)
	if err != nil {
		return &deliver.RefusedError{Err: err}
	}
	_, err = o.endpoint.Post(ctx, path, nil, body)
	return err
}
