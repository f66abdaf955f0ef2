package alerting

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/statusd/statusd/rules"
	"github.com/statusd/statusd/rules/actions"
	"github.com/statusd/statusd/rules/endpoint"
)

// Config is what an operator decides about rules. The zero value is no rules at all.
type Config struct {
	// Pack adds the starter pack; a rule of Files with the name of one of its rules replaces that.
	Pack bool `yaml:"pack"`
	// Files are files of rules, or directories of them.
	Files []string `yaml:"files"`
	// ExternalURL is where users reach the page of this node.
	ExternalURL   string             `yaml:"externalURL"`
	Alertmanagers []endpoint.Options `yaml:"alertmanagers"`
	Webhooks      []Webhook          `yaml:"webhooks"`
	Events        bool               `yaml:"events"`
	Conditions    bool               `yaml:"conditions"`
	Log           bool               `yaml:"log"`
	// Actions are those that are allowed, by name, and how often.
	Actions map[rules.ActionKind]actions.Limits `yaml:"actions"`
	// ActionsKubeconfig is for actions that the process's own credentials do not allow.
	ActionsKubeconfig string `yaml:"actionsKubeconfig"`
	// ActionsSecretFile signs the calls of the action webhook.
	ActionsSecretFile string `yaml:"actionsSecretFile"`
}

// Webhook is one receiver.
type Webhook struct {
	Name             string `yaml:"name"`
	endpoint.Options `yaml:",inline"`
	SecretFile       string `yaml:"secretFile,omitempty"`
}

// Default is a config without rules, of which the outputs that need nothing are on.
func Default() Config {
	return Config{
		Files: []string{}, Alertmanagers: []endpoint.Options{}, Webhooks: []Webhook{}, Events: true, Conditions: true, Log: true,
		Actions: map[rules.ActionKind]actions.Limits{},
	}
}

// Enabled reports whether there are rules.
func (c *Config) Enabled() bool { return c.Pack || len(c.Files) > 0 }

// Paths returns the paths in the config, so that relative ones can be resolved.
func (c *Config) Paths() []*string {
	paths := []*string{&c.ActionsKubeconfig, &c.ActionsSecretFile}
	for i := range c.Files {
		paths = append(paths, &c.Files[i])
	}
	for i := range c.Alertmanagers {
		paths = append(paths, c.Alertmanagers[i].Files()...)
	}
	for i := range c.Webhooks {
		paths = append(paths, &c.Webhooks[i].SecretFile)
		paths = append(paths, c.Webhooks[i].Files()...)
	}
	return paths
}

// Validate calls wrong for each value that cannot be. It looks at no file.
func (c *Config) Validate(wrong func(field, format string, args ...any)) {
	for i, path := range c.Files {
		if path == "" {
			wrong(fmt.Sprintf("rules.files[%d]", i), "is empty")
		}
	}
	if c.ExternalURL != "" {
		if u, err := url.Parse(c.ExternalURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			wrong("rules.externalURL", "%q: want http://HOST or https://HOST", c.ExternalURL)
		}
	}
	seen := map[string]bool{}
	for i := range c.Alertmanagers {
		field := fmt.Sprintf("rules.alertmanagers[%d]", i)
		if err := c.Alertmanagers[i].Validate(); err != nil {
			wrong(field, "%v", err)
		}
		if seen[c.Alertmanagers[i].URL] {
			wrong(field, "%s is there twice", c.Alertmanagers[i].URL)
		}
		seen[c.Alertmanagers[i].URL] = true
	}
	names := map[string]bool{}
	for i := range c.Webhooks {
		field := fmt.Sprintf("rules.webhooks[%d]", i)
		if err := c.Webhooks[i].Validate(); err != nil {
			wrong(field, "%v", err)
		}
		if name := c.Webhooks[i].Name; name == "" || names[name] {
			wrong(field+".name", "%q: want a name that no other webhook has", name)
		}
		names[c.Webhooks[i].Name] = true
	}
	if err := actions.Policy(c.Actions).Validate(); err != nil {
		wrong("rules.actions", "%v", err)
	}
	if !c.Enabled() && (len(c.Alertmanagers) > 0 || len(c.Webhooks) > 0 || len(c.Actions) > 0) {
		wrong("rules", "has outputs or actions, and no rules: set pack or files")
	}
}

// Load reads the rules: those of the pack, if it is on, and those of the files.
func (c *Config) Load() (*rules.Set, error) {
	set := &rules.Set{}
	if len(c.Files) > 0 {
		var err error
		if set, err = rules.Load(c.Files...); err != nil {
			return nil, fmt.Errorf("alerting: %w", err)
		}
	}
	if c.Pack {
		set = set.Over(rules.Pack())
	}
	return set, nil
}

// Check returns what is wrong with the rules and with the files of outputs and actions. It asks no server.
func (c *Config) Check() error {
	if !c.Enabled() {
		return nil
	}
	_, rulesErr := c.Load()
	_, outputsErr := c.receivers(receiverOptions{})
	return errors.Join(rulesErr, outputsErr, readable(c.ActionsKubeconfig), readable(c.ActionsSecretFile))
}
