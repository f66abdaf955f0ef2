package standard

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/statusd/statusd/guard"
)

// Config is what an operator decides about a guard. [Config.Settings] says of each field what it is for.
type Config struct {
	Enabled        bool     `yaml:"enabled"`
	Unit           string   `yaml:"unit"`
	RuntimeUnit    string   `yaml:"runtimeUnit"`
	Command        []string `yaml:"command"`
	RuntimeCommand []string `yaml:"runtimeCommand"`
	PIDFile        string   `yaml:"pidFile"`
	HealthzURL     string   `yaml:"healthzURL"`
	LogFile        string   `yaml:"logFile"`

	CertificateFile string        `yaml:"certificateFile"`
	Interval        time.Duration `yaml:"interval"`

	Restart         bool          `yaml:"restart"`
	RestartRuntime  bool          `yaml:"restartRuntime"`
	RestartsPerHour int           `yaml:"restartsPerHour"`
	FirstPause      time.Duration `yaml:"firstPause"`
	LastPause       time.Duration `yaml:"lastPause"`
	CoolDown        time.Duration `yaml:"coolDown"`

	NodeCondition bool   `yaml:"nodeCondition"`
	Events        bool   `yaml:"events"`
	Webhook       string `yaml:"webhook"`

	EvidenceCount int   `yaml:"evidenceCount"`
	EvidenceBytes int64 `yaml:"evidenceBytes"`

	Shutdown                   bool          `yaml:"shutdown"`
	KubeletShutdownGracePeriod time.Duration `yaml:"kubeletShutdownGracePeriod"`
}

// Default is a guard that is off. Once it is enabled it observes, and writes and restarts nothing.
func Default() Config {
	p := guard.DefaultPolicy()
	return Config{
		Unit: "kubelet.service", RuntimeUnit: "containerd.service", Command: []string{}, RuntimeCommand: []string{},
		HealthzURL: "http://127.0.0.1:10248/healthz", Interval: 3 * time.Second,
		RestartsPerHour: p.PerHour, FirstPause: p.FirstPause, LastPause: p.LastPause, CoolDown: p.CoolDown,
		EvidenceCount: 20, EvidenceBytes: 64 << 20,
	}
}

// Setting is one field: its name in the section of the file, where its value is, and what it is for.
type Setting struct {
	Name  string
	Value any
	Doc   string
}

// Settings are all fields, in the order of the file.
func (c *Config) Settings() []Setting {
	return []Setting{
		{"enabled", &c.Enabled, "Judge the health of the kubelet by evidence: its process, /healthz, lease, metrics, runtime and more. This alone\nwrites and restarts nothing. See docs/guard.md."},
		{"unit", &c.Unit, "The kubelet's unit of systemd. Empty: see command and pidFile."},
		{"runtimeUnit", &c.RuntimeUnit, "The container runtime's unit. Empty: it is not known."},
		{"command", &c.Command, "The kubelet's command and arguments, if the guard is to run it as a child process in place of a unit: it is\nstarted after the runtime answers, and stopped when statusd stops."},
		{"runtimeCommand", &c.RuntimeCommand, "The same for the container runtime. Empty: the guard does not start one, and restartRuntime restarts runtimeUnit."},
		{"pidFile", &c.PIDFile, "The kubelet's pid file, where there is neither unit nor command. Then nothing is restarted. If this is empty too, a\nprocess of the name of kubelet.process is looked for."},
		{"healthzURL", &c.HealthzURL, "The kubelet's healthz endpoint. Empty: it is not asked."},
		{"logFile", &c.LogFile, "The kubelet's log file, of which the end is kept before a restart. Empty: the journal of its unit."},
		{"certificateFile", &c.CertificateFile, "The kubelet's client certificate, or its kubeconfig if that has or names it. Empty: pki/kubelet-client-current.pem in\nkubeletRoot."},
		{"interval", &c.Interval, "How often the evidence is looked at. Changes of the unit are seen at once."},
		{"restart", &c.Restart, "Restart a kubelet that is unhealthy, if that would help, within the bounds below."},
		{"restartRuntime", &c.RestartRuntime, "Restart a container runtime that is down, within the same bounds."},
		{"restartsPerHour", &c.RestartsPerHour, "How many restarts there may be within an hour."},
		{"firstPause", &c.FirstPause, "The pause after the first restart within an hour; it doubles with each further one."},
		{"lastPause", &c.LastPause, "The longest pause."},
		{"coolDown", &c.CoolDown, "How long a kubelet that has just started, or a runtime that was just restarted, is left alone."},
		{"nodeCondition", &c.NodeCondition, "Keep the condition KubeletHealthy of the Node, also while the kubelet is dead."},
		{"events", &c.Events, "Write Events of the Node: KubeletUnhealthy, KubeletHealthy, KubeletRestarted, KubeletRestartSuppressed."},
		{"webhook", &c.Webhook, "URL that gets a small JSON document for each of these. Empty: none."},
		{"evidenceCount", &c.EvidenceCount, "How many restarts keep their evidence, in guard in stateDir."},
		{"evidenceBytes", &c.EvidenceBytes, "How many bytes that may take."},
		{"shutdown", &c.Shutdown, "Delay shutdowns of the machine at logind, report the Node as not ready, and stop the kubelet in order."},
		{"kubeletShutdownGracePeriod", &c.KubeletShutdownGracePeriod, "The shutdownGracePeriod of the kubelet's own configuration: it is stopped after that."},
	}
}

// Problem is something wrong with a field.
type Problem struct{ Field, Text string }

// Validate returns what is wrong, all of it, as one error.
func (c *Config) Validate() error {
	var problems []error
	for _, p := range c.Problems() {
		problems = append(problems, fmt.Errorf("%s: %s", p.Field, p.Text))
	}
	return errors.Join(problems...)
}

// Problems are what is wrong. They look at no file.
func (c *Config) Problems() (problems []Problem) {
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
		}
	}
	for _, u := range []struct{ field, value string }{{"unit", c.Unit}, {"runtimeUnit", c.RuntimeUnit}} {
		wrong(u.value != "" && !strings.Contains(u.value, "."), u.field, "%q has no suffix such as .service", u.value)
	}
	for _, u := range []struct{ field, value string }{{"healthzURL", c.HealthzURL}, {"webhook", c.Webhook}} {
		parsed, err := url.Parse(u.value)
		wrong(u.value != "" && (err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https"), u.field, "%q is no http or https URL", u.value)
	}
	wrong(c.Interval < time.Second || c.Interval > time.Minute, "interval", "%v is not between 1s and 1m", c.Interval)
	wrong(c.RestartsPerHour < 0, "restartsPerHour", "%d is negative", c.RestartsPerHour)
	wrong(c.FirstPause <= 0, "firstPause", "%v is not above zero", c.FirstPause)
	wrong(c.LastPause < c.FirstPause, "lastPause", "%v is less than firstPause", c.LastPause)
	wrong(c.CoolDown < 0, "coolDown", "%v is negative", c.CoolDown)
	wrong(c.EvidenceCount < 1, "evidenceCount", "%d is less than 1", c.EvidenceCount)
	wrong(c.EvidenceBytes < 1<<20, "evidenceBytes", "%d is less than 1 MiB", c.EvidenceBytes)
	wrong(c.KubeletShutdownGracePeriod < 0, "kubeletShutdownGracePeriod", "%v is negative", c.KubeletShutdownGracePeriod)
	wrong((c.Restart || c.RestartRuntime || c.Shutdown || c.NodeCondition || c.Events || c.Webhook != "") && !c.Enabled,
		"enabled", "is false, and restart, restartRuntime, nodeCondition, events, webhook and shutdown need it")
	wrong(len(c.RuntimeCommand) > 0 && c.kind() != child, "runtimeCommand", "needs command: a kubelet that is a unit has its runtime in runtimeUnit")
	wrong(c.Restart && c.kind() == found, "restart", "needs unit or command")
	wrong(c.RestartRuntime && c.RuntimeUnit == "" && len(c.RuntimeCommand) == 0, "restartRuntime", "needs runtimeUnit or runtimeCommand")
	wrong(c.Shutdown && c.kind() == found, "shutdown", "needs unit or command")
	return problems
}

// kind is how the kubelet is controlled.
func (c *Config) kind() kind {
	switch {
	case len(c.Command) > 0:
		return child
	case c.Unit != "":
		return systemd
	}
	return found
}

type kind int

const (
	found kind = iota
	systemd
	child
)

// policy is that of the guard.
func (c *Config) policy() guard.Policy {
	return guard.Policy{
		Restart: c.Restart, RestartRuntime: c.RestartRuntime, PerHour: c.RestartsPerHour,
		FirstPause: c.FirstPause, LastPause: c.LastPause, CoolDown: c.CoolDown,
	}
}
