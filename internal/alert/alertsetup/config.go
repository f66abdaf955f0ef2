package alertsetup

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/statusd/statusd/internal/alert/actions"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// Config is an operator's configuration of rules. The zero value has no rules.
type Config struct {
	// Pack adds the starter pack; a rule of Files with the name of one of its rules replaces that.
	Pack bool `yaml:"pack"`
	// Files are files of rules, or directories of them.
	Files []string `yaml:"files"`
	// ExternalURL is where users reach the page of this node.
	ExternalURL string `yaml:"externalURL"`
	// Actions are the allowed actions, by name, with their limits.
	Actions map[ruleset.ActionKind]actions.Limits `yaml:"actions"`
	// ActionsKubeconfig is for actions that the process's own credentials do not allow.
	ActionsKubeconfig string `yaml:"actionsKubeconfig"`
}

// Default is a config without rules.
func Default() Config {
	return Config{Files: []string{}, Actions: map[ruleset.ActionKind]actions.Limits{}}
}

// Enabled reports whether there are rules.
func (c *Config) Enabled() bool { return c.Pack || len(c.Files) > 0 }

// Resolve calls resolve with the paths in the config, which may be relative.
func (c *Config) Resolve(resolve func(paths ...*string)) {
	resolve(&c.ActionsKubeconfig)
	for i := range c.Files {
		resolve(&c.Files[i])
	}
	for kind, limits := range c.Actions {
		resolve(&limits.SecretFile)
		c.Actions[kind] = limits
	}
}

// Validate calls wrong for each invalid value. Validate reads no file.
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
	if err := actions.Policy(c.Actions).Validate(); err != nil {
		wrong("rules.actions", "%v", err)
	}
	if !c.Enabled() && len(c.Actions) > 0 {
		wrong("rules", "has actions, and no rules: set pack or files")
	}
}

// Load reads the rules of the pack, if it is on, and the rules of the files.
func (c *Config) Load() (*ruleset.Set, error) {
	set := &ruleset.Set{}
	if len(c.Files) > 0 {
		var err error
		if set, err = ruleset.Load(c.Files...); err != nil {
			return nil, fmt.Errorf("alerting: %w", err)
		}
	}
	if c.Pack {
		set = set.Over(ruleset.Pack())
	}
	return set, nil
}

// Check returns the problems of the rules and of the files of outputs and actions. Check sends no request.
func (c *Config) Check(outputs *Outputs) error {
	if !c.Enabled() {
		return nil
	}
	_, rulesErr := c.Load()
	_, outputsErr := outputs.receivers(receiverOptions{url: c.ExternalURL})
	return errors.Join(rulesErr, outputsErr, readable(c.ActionsKubeconfig), readable(c.Actions[ruleset.ActionWebhook].SecretFile))
}
