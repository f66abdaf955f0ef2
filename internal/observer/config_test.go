package observer

import (
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/configfile/configfiletest"
)

// What "config default --observe" prints is a config file, and it is the default one.
func TestDefaultFile_IsTheDefault(t *testing.T) {
	configfiletest.DefaultFileIsTheDefault(t, file(), Load)
	c := Default()
	if err := c.Validate(); err != nil {
		t.Errorf("the default is not valid: %v", err)
	}
}

// By default nothing is written and nothing is repaired.
func TestTheDefaultIsReadOnly(t *testing.T) {
	if c := Default(); c.Outputs.Events || c.Outputs.Conditions || len(c.Repair.Kinds) > 0 {
		t.Errorf("the default writes: %+v", c)
	}
}

func TestConfig_WrongValues_AreNamedWithTheirFields(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"node name", func(c *Config) { c.NodeName = "N_1" }, `config: nodeName: "N_1": `},
		{"no state", func(c *Config) { c.StateDir = "" }, "config: stateDir: is empty; name a directory"},
		{"host root", func(c *Config) { c.HostRoot = "host" }, `config: hostRoot: "host": want an absolute path`},
		{"open to all", func(c *Config) { c.HealthzBindAddress = "0.0.0.0:10266" }, `config: healthzBindAddress: "0.0.0.0:10266": want a loopback address`},
		{"metrics", func(c *Config) { c.MetricsBindAddress = "here:1" }, `config: metricsBindAddress: "here:1": want IP:PORT`},
		{"cri", func(c *Config) { c.CRIEndpoint = "/run/x.sock" }, `config: criEndpoint: "/run/x.sock": want a Unix socket`},
		{"no way to the kubelet", func(c *Config) { c.Kubelet.URL, c.Kubelet.PodsSocket = "", "none" }, "config: kubelet.url: is empty, and there is no podsSocket"},
		{"plain http", func(c *Config) { c.Kubelet.URL = "http://127.0.0.1:10255" }, `config: kubelet.url: "http://127.0.0.1:10255": want https://HOST:PORT`},
		{"half a certificate", func(c *Config) { c.Kubelet.CertFile = "/c" }, "config: kubelet.certFile: and keyFile need each other"},
		{"repair", func(c *Config) { c.Repair.Kinds = []string{"ClockSkew"} }, `config: repair.kinds[0]: "ClockSkew": want one of `},
		{"log", func(c *Config) { c.Log.Format = "xml" }, `config: log.format: "xml": want text or json`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config := Default()
			c.change(&config)
			if err := config.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAFileOfAnotherKindIsRefused(t *testing.T) {
	for data, want := range map[string]string{
		"apiVersion: statusd/v1alpha1\nkind: StatusdConfiguration\n":                                                     "want apiVersion: statusd/v1alpha1, kind: ObserveConfiguration",
		"apiVersion: statusd/v1alpha1\nkind: ObserveConfiguration\ncriPase: 1s\n":                                        `c.yaml:3: unknown field "criPase"; statusd config default --observe lists all fields`,
		"apiVersion: statusd/v1alpha1\nkind: ObserveConfiguration\nkubelet:\n  pace: 1s\n":                               "c.yaml:4: kubelet.pace is no longer a setting: the kubelet is asked every 10 s",
		"apiVersion: statusd/v1alpha1\nkind: ObserveConfiguration\nguard: {pidFile: /run/kubelet.pid, firstPause: 1s}\n": "c.yaml:3: guard.pidFile is no longer a setting: set kubelet.process to the path of the file",
		"apiVersion: statusd/v1alpha1\nkind: ObserveConfiguration\nmachine: {kernelLog: \"\", units: {}}\n":              "c.yaml:3: machine.units is no longer a setting: the journal of guard.unit and guard.runtimeUnit is read",
	} {
		if _, err := Load("c.yaml", []byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// NODE_NAME is what the downward API gives to a pod; the config goes before it.
func TestTheNameOfTheNode(t *testing.T) {
	t.Setenv("NODE_NAME", "from-environment")
	c := Default()
	if name, err := c.nodeName(); err != nil || name != "from-environment" {
		t.Errorf("got %q, %v", name, err)
	}
	c.NodeName = "from-config"
	if name, err := c.nodeName(); err != nil || name != "from-config" {
		t.Errorf("got %q, %v", name, err)
	}
	t.Setenv("NODE_NAME", "Not A Name")
	c.NodeName = ""
	if _, err := c.nodeName(); err == nil || !strings.Contains(err.Error(), "NODE_NAME") {
		t.Errorf("got %v, want an error about NODE_NAME", err)
	}
}

// On an IPv6 node the DaemonSet joins address and port by a colon, without brackets.
func TestConfig_AddressesOfIPv6(t *testing.T) {
	for _, c := range []struct{ host, url, bind string }{
		{"192.0.2.1", "https://192.0.2.1:10250", "192.0.2.1:10266"},
		{"fd00:10::1", "https://[fd00:10::1]:10250", "[fd00:10::1]:10266"},
		{"[fd00:10::1]", "https://[fd00:10::1]:10250", "[fd00:10::1]:10266"},
	} {
		config := Default()
		config.Kubelet.URL, config.MetricsBindAddress = "https://"+c.host+":10250", c.host+":10266"
		if err := config.Validate(); err != nil || config.Kubelet.URL != c.url || config.MetricsBindAddress != c.bind {
			t.Errorf("%s: got %s and %s, %v", c.host, config.Kubelet.URL, config.MetricsBindAddress, err)
		}
	}
}

// docs/reference/settings-observe.md has each setting as the default file has it.
func TestTableOfSettings_IsTheDefaultFile(t *testing.T) {
	configfiletest.PageHasTheSettings(t, file(), "../../docs/reference/settings-observe.md")
}
