package guardsetup

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

// Config is an operator's configuration of a guard. The default config file of a process documents each field.
type Config struct {
	Enabled        bool     `yaml:"enabled"`
	Unit           string   `yaml:"unit"`
	RuntimeUnit    string   `yaml:"runtimeUnit"`
	RestartCommand []string `yaml:"restartCommand"`
	HealthzURL     string   `yaml:"healthzURL"`

	CertificateFile string `yaml:"certificateFile"`

	Restart         bool          `yaml:"restart"`
	RestartRuntime  bool          `yaml:"restartRuntime"`
	Semaphore       string        `yaml:"semaphore"`
	RestartsPerHour int           `yaml:"restartsPerHour"`
	CoolDown        time.Duration `yaml:"coolDown"`

	Shutdown                   bool          `yaml:"shutdown"`
	KubeletShutdownGracePeriod time.Duration `yaml:"kubeletShutdownGracePeriod"`

	// LogFile is the kubelet's log on the host. Empty: the journal of its unit. It is not a setting of this section: the
	// program copies the path from its log settings.
	LogFile string `yaml:"-"`
}

// Default is a guard that is off. Once it is enabled it observes, and writes and restarts nothing.
func Default() Config {
	p := guard.DefaultPolicy()
	return Config{
		Unit: "kubelet.service", RuntimeUnit: "containerd.service", RestartCommand: []string{},
		HealthzURL: "http://127.0.0.1:10248/healthz",
		Semaphore:  "statusd", RestartsPerHour: p.PerHour, CoolDown: p.CoolDown,
	}
}

// Problem is something wrong with a field.
type Problem struct{ Field, Text string }

// Validate returns all problems as one error.
func (c *Config) Validate() error {
	var problems []error
	for _, p := range c.Problems() {
		problems = append(problems, fmt.Errorf("%s: %s", p.Field, p.Text))
	}
	return errors.Join(problems...)
}

// Problems returns the problems of the values. Problems reads no file.
func (c *Config) Problems() (problems []Problem) {
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
		}
	}
	for _, u := range []struct{ field, value string }{{"unit", c.Unit}, {"runtimeUnit", c.RuntimeUnit}} {
		wrong(u.value != "" && !strings.Contains(u.value, "."), u.field, "%q has no suffix such as .service", u.value)
	}
	for _, u := range []struct{ field, value string }{{"healthzURL", c.HealthzURL}} {
		parsed, err := url.Parse(u.value)
		wrong(u.value != "" && (err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https"), u.field, "%q is no http or https URL", u.value)
	}
	wrong(c.RestartsPerHour < 0, "restartsPerHour", "%d is negative", c.RestartsPerHour)
	wrong(c.CoolDown <= 0, "coolDown", "%v is not above zero", c.CoolDown)
	wrong(c.KubeletShutdownGracePeriod < 0, "kubeletShutdownGracePeriod", "%v is negative", c.KubeletShutdownGracePeriod)
	wrong((c.Restart || c.RestartRuntime || c.Shutdown) && !c.Enabled, "enabled", "is false, and restart, restartRuntime and shutdown need it")
	wrong(len(c.RestartCommand) > 0 && c.Unit != "", "restartCommand", "needs an empty unit: systemd restarts a unit")
	wrong(c.Restart && c.Unit == "" && len(c.RestartCommand) == 0, "restart", "needs unit or restartCommand")
	wrong(c.RestartRuntime && c.RuntimeUnit == "", "restartRuntime", "needs runtimeUnit")
	wrong(c.Shutdown && c.Unit == "", "shutdown", "needs unit")
	return problems
}

// policy returns the guard's policy.
func (c *Config) policy() guard.Policy {
	return guard.Policy{
		Restart: c.Restart, RestartRuntime: c.RestartRuntime, PerHour: c.RestartsPerHour,
		FirstPause: c.CoolDown / 2, LastPause: 10 * c.CoolDown, CoolDown: c.CoolDown,
	}
}
