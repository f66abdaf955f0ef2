package alertsetup

import (
	"fmt"
	"log/slog"

	"github.com/statusd/statusd/internal/alert/alertmanager"
	"github.com/statusd/statusd/internal/alert/deliver"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/webhook"
)

// Outputs are the destinations of a process's findings: the section of the config that enables writes.
type Outputs struct {
	// Events: of the pod, or the Node, for drift, verdicts, lines of logs and alerts.
	Events bool `yaml:"events"`
	// Conditions: of the Node, for the audit, the verdict on the kubelet, problems of the machine, and rules with the
	// annotation nodeCondition.
	Conditions bool `yaml:"conditions"`
	// Alertmanagers and Webhooks each get every alert.
	Alertmanagers []endpoint.Options `yaml:"alertmanagers"`
	Webhooks      []Webhook          `yaml:"webhooks"`
}

// Webhook is one receiver.
type Webhook struct {
	Name             string `yaml:"name"`
	endpoint.Options `yaml:",inline"`
	SecretFile       string `yaml:"secretFile,omitempty"`
}

// Paths returns the paths in the section, so that relative ones can be resolved.
func (o *Outputs) Paths() (paths []*string) {
	for i := range o.Alertmanagers {
		paths = append(paths, o.Alertmanagers[i].Files()...)
	}
	for i := range o.Webhooks {
		paths = append(paths, &o.Webhooks[i].SecretFile)
		paths = append(paths, o.Webhooks[i].Files()...)
	}
	return paths
}

// Validate calls wrong for each invalid value. Validate reads no file. Without rules there is nothing to send.
func (o *Outputs) Validate(hasRules bool, wrong func(field, format string, args ...any)) {
	seen, names := map[string]bool{}, map[string]bool{}
	for i := range o.Alertmanagers {
		field := fmt.Sprintf("outputs.alertmanagers[%d]", i)
		if err := o.Alertmanagers[i].Validate(); err != nil {
			wrong(field, "%v", err)
		}
		if seen[o.Alertmanagers[i].URL] {
			wrong(field, "%s is there twice", o.Alertmanagers[i].URL)
		}
		seen[o.Alertmanagers[i].URL] = true
	}
	for i := range o.Webhooks {
		field := fmt.Sprintf("outputs.webhooks[%d]", i)
		if err := o.Webhooks[i].Validate(); err != nil {
			wrong(field, "%v", err)
		}
		if name := o.Webhooks[i].Name; name == "" || names[name] {
			wrong(field+".name", "%q: want a name that no other webhook has", name)
		}
		names[o.Webhooks[i].Name] = true
	}
	if !hasRules && (len(o.Alertmanagers) > 0 || len(o.Webhooks) > 0) {
		wrong("outputs", "has alertmanagers or webhooks, but there are no rules: set rules.pack or rules.files")
	}
}

// receiverOptions are what receivers need beside the config.
type receiverOptions struct {
	node, url string
	metrics   *deliver.Metrics
	log       *slog.Logger
}

// receivers makes the outputs over the network.
func (o *Outputs) receivers(with receiverOptions) (outputs []engine.Output, err error) {
	for i := range o.Alertmanagers {
		output, err := alertmanager.New(alertmanager.Options{Endpoint: o.Alertmanagers[i], ExternalURL: with.url, Node: with.node, Metrics: with.metrics, Logger: with.log})
		if err != nil {
			return nil, fmt.Errorf("alerting: outputs.alertmanagers[%d]: %w", i, err)
		}
		outputs = append(outputs, output)
	}
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		output, err := webhook.New(webhook.Options{Name: w.Name, Endpoint: w.Options, SecretFile: w.SecretFile, ExternalURL: with.url, Node: with.node, Metrics: with.metrics, Logger: with.log})
		if err != nil {
			return nil, fmt.Errorf("alerting: outputs.webhooks[%d]: %w", i, err)
		}
		outputs = append(outputs, output)
	}
	return outputs, nil
}
