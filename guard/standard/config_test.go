package standard

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTheDefaultIsOffAndValid(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil || c.Enabled || c.Restart || c.RestartRuntime || c.NodeCondition || c.Events || c.Webhook != "" || c.Shutdown {
		t.Errorf("the default does something: %+v (%v)", c, err)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Unit = "kubelet" }, "unit: \"kubelet\" has no suffix"},
		{func(c *Config) { c.Webhook, c.Enabled = "alerts", true }, "webhook: \"alerts\" is no http or https URL"},
		{func(c *Config) { c.Interval = time.Millisecond }, "interval: 1ms is not between"},
		{func(c *Config) { c.LastPause = time.Second }, "lastPause: 1s is less than firstPause"},
		{func(c *Config) { c.Restart = true }, "enabled: is false"},
		{func(c *Config) { c.Enabled, c.Restart, c.Unit = true, true, "" }, "restart: needs unit or command"},
		{func(c *Config) { c.RuntimeCommand = []string{"containerd"} }, "runtimeCommand: needs command"},
		{func(c *Config) { c.Enabled, c.RestartRuntime, c.RuntimeUnit = true, true, "" }, "restartRuntime: needs runtimeUnit or runtimeCommand"},
		{func(c *Config) { c.EvidenceCount, c.RestartsPerHour = 0, -1 }, "evidenceCount: 0 is less than 1"},
	} {
		config := Default()
		c.change(&config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// A kubelet that is a child may have its runtime as a unit, which is asked for nothing unless it may be restarted: there need
// not be a systemd.
func TestTheRuntimeOfAChild(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Config)
		runtime string
		started int // services in order
	}{
		{"a unit", func(*Config) {}, "", 1},
		{"a unit that may be restarted", func(c *Config) { c.RestartRuntime = true }, "containerd.service", 1},
		{"a child", func(c *Config) { c.RuntimeCommand = []string{"containerd"} }, "container runtime", 2},
	} {
		config, g := Default(), &Guard{}
		config.Enabled, config.Command = true, []string{"kubelet"}
		c.change(&config)
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		o := Options{StateDir: t.TempDir()}
		kubelet, runtime, err := g.services(&config, &o)
		if err != nil {
			t.Fatal(err)
		}
		var name string
		if runtime != nil {
			name = runtime.Name()
		}
		if steps := g.order(&config, &o, kubelet, runtime).Steps; name != c.runtime || len(steps) != c.started || kubelet.Name() != "kubelet" {
			t.Errorf("%s: the runtime is %q, %d services are started, the kubelet is %s", c.name, name, len(steps), kubelet.Name())
		}
		g.Close()
	}
}

// Every field is a setting, under the name that the file has.
func TestEveryFieldIsASetting(t *testing.T) {
	config := Default()
	settings := config.Settings()
	fields := reflect.TypeFor[Config]()
	if len(settings) != fields.NumField() {
		t.Fatalf("%d settings for %d fields", len(settings), fields.NumField())
	}
	for i, s := range settings {
		field := fields.Field(i)
		if s.Name != field.Tag.Get("yaml") || s.Value != reflect.ValueOf(&config).Elem().Field(i).Addr().Interface() || s.Doc == "" {
			t.Errorf("setting %s is not field %s", s.Name, field.Name)
		}
	}
}
