package guardsetup

import (
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/guard"
)

func TestTheDefaultIsOffAndValid(t *testing.T) {
	c := Default()
	if c.policy() != guard.DefaultPolicy() {
		t.Errorf("the policy is %+v, want that of the package", c.policy())
	}
	if err := c.Validate(); err != nil || c.Enabled || c.Restart || c.RestartRuntime || c.Shutdown {
		t.Errorf("the default does something: %+v (%v)", c, err)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Unit = "kubelet" }, "unit: \"kubelet\" has no suffix"},
		{func(c *Config) { c.CoolDown = 0 }, "coolDown: 0s is not above zero"},
		{func(c *Config) { c.Restart = true }, "enabled: is false"},
		{func(c *Config) { c.Enabled, c.Restart, c.Unit = true, true, "" }, "restart: needs unit or restartCommand"},
		{func(c *Config) { c.RestartCommand = []string{"restart"} }, "restartCommand: needs an empty unit"},
		{func(c *Config) { c.Enabled, c.RestartRuntime, c.RuntimeUnit = true, true, "" }, "restartRuntime: needs runtimeUnit"},
		{func(c *Config) { c.RestartsPerHour = -1 }, "restartsPerHour: -1 is negative"},
	} {
		config := Default()
		c.change(&config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
