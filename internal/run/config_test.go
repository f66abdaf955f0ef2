package run

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/internal/configfile/configfiletest"
	"github.com/statusd/statusd/internal/process"
)

const header = "apiVersion: statusd/v1alpha1\nkind: StatusdConfiguration\n"

func TestConfigFileIsReadOverTheDefaults(t *testing.T) {
	c, err := Load("f.yaml", []byte(header+"nodeName: n1\nshutdownTimeout: 3s\nnode:\n  maxPods: 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.NodeName, want.ShutdownTimeout, want.Node.MaxPods = "n1", 3*time.Second, 7
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant the defaults but for three fields: %+v", c, want)
	}
}

func TestShownConfig_HasTheNamesOfTheFile(t *testing.T) {
	c := Default()
	c.NodeName = "n1"
	text, err := json.Marshal(c.shown())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"nodeName":"n1"`, `"podsSocket":`, `"stateDir":`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}

func TestBadConfigFilesAreNamedWithTheirLine(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"unknown field", header + "nodeNmae: n1\n", `config: f.yaml:3: unknown field "nodeNmae" (did you mean nodeName?); statusd config default lists all fields`},
		{"unknown field inside", header + "log:\n  format: text\n  colour: red\n", `config: f.yaml:5: unknown field "colour"; statusd config default lists all fields`},
		{"wrong type", header + "node:\n  maxPods: many\n", `config: f.yaml:4: got "many", want a number`},
		{"wrong duration", header + "shutdownTimeout: soon\n", `config: f.yaml:3: got "soon", want a duration such as 1m30s`},
		{"twice", header + "nodeName: a\nnodeName: b\n", `config: f.yaml:4: mapping key "nodeName" already defined at line 3`},
		{"empty", "", `config: f.yaml: is apiVersion "", kind ""; want apiVersion: statusd/v1alpha1, kind: StatusdConfiguration`},
		{"another version", "apiVersion: statusd/v2\nkind: StatusdConfiguration\n", `config: f.yaml: is apiVersion "statusd/v2", kind "StatusdConfiguration"; want apiVersion: statusd/v1alpha1, kind: StatusdConfiguration`},
		{"two documents", header + "---\n" + header, "config: f.yaml: has more than one YAML document; want one"},
		{"no YAML", header + "a: [\n", "config: f.yaml: yaml: line 3: did not find expected node content"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load("f.yaml", []byte(c.file))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestEveryWrongValueIsNamedWithItsField(t *testing.T) {
	cases := []struct {
		path  string
		spoil func(*Config)
	}{
		{"nodeName", func(c *Config) { c.NodeName = "Not_A_Name" }},
		{"stateDir", func(c *Config) { c.StateDir = "" }},
		{"bootstrapKubeconfig", func(c *Config) { c.BootstrapKubeconfig = "/b" }},
		{"manifests", func(c *Config) { c.Manifests = "" }},
		{"healthzBindAddress", func(c *Config) { c.HealthzBindAddress = "0.0.0.0:10265" }},
		{"healthzBindAddress", func(c *Config) { c.HealthzBindAddress = "localhost" }},
		{"shutdownTimeout", func(c *Config) { c.ShutdownTimeout = -time.Second }},
		{"shutdownGracePeriod", func(c *Config) { c.ShutdownGracePeriod = -time.Second }},
		{"shutdownGracePeriodCriticalPods", func(c *Config) { c.ShutdownGracePeriodCriticalPods = time.Hour }},
		{"log.format", func(c *Config) { c.Log.Format = "xml" }},
		{"log.level", func(c *Config) { c.Log.Level = "loud" }},
		{"node.labels[a b]", func(c *Config) { c.Node.Labels = map[string]string{"a b": ""} }},
		{"node.labels[a]", func(c *Config) { c.Node.Labels = map[string]string{"a": "b c"} }},
		{"node.labels[node-role.kubernetes.io/edge]", func(c *Config) { c.Node.Labels = map[string]string{"node-role.kubernetes.io/edge": ""} }},
		{"node.taints[1]", func(c *Config) { c.Node.Taints = []string{"a=b:NoSchedule", "a:Never"} }},
		{"node.addresses[0]", func(c *Config) { c.Node.Addresses = []string{"here"} }},
		{"node.maxPods", func(c *Config) { c.Node.MaxPods = 0 }},
		{"node.reserved[cpu]", func(c *Config) { c.Node.Reserved = map[string]string{"cpu": "lots"} }},
		{"node.reserved[ram]", func(c *Config) { c.Node.Reserved = map[string]string{"ram": "1Gi"} }},
		{"statusUpdates.qps", func(c *Config) { c.StatusUpdates.QPS = -1 }},
		{"containerLogs.maxBytes", func(c *Config) { c.ContainerLogs.MaxBytes = 1 }},
	}
	all := Default()
	if err := all.Validate(); err != nil {
		t.Fatalf("the defaults are not valid: %v", err)
	}
	for _, c := range cases {
		config := Default()
		c.spoil(&config)
		if err := config.Validate(); err == nil || !strings.HasPrefix(err.Error(), "config: "+c.path+": ") {
			t.Errorf("got %v, want an error about %s", err, c.path)
		}
		c.spoil(&all)
	}
	for _, c := range cases {
		if c.path == "healthzBindAddress" || strings.HasPrefix(c.path, "node.labels") || c.path == "node.reserved[cpu]" {
			continue // spoiled twice, and only the second way shows
		}
		if err := all.Validate(); !strings.Contains(err.Error(), "config: "+c.path+": ") {
			t.Errorf("with everything wrong, %s is not named:\n%v", c.path, err)
		}
	}
}

// What "config default" prints is a config file, and it is the default one.
func TestDefaultFile_IsTheDefault(t *testing.T) {
	configfiletest.DefaultFileIsTheDefault(t, file(), Load)
}

func TestFlagsOverrideTheFile(t *testing.T) {
	c, err := Load("f.yaml", []byte(header+"nodeName: file\nstateDir: /file\n"))
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.AddFlags(flags)
	if err := flags.Parse([]string{"--node-name=flag", "--shutdown-timeout=1s", "--kube-api-qps=2.5"}); err != nil {
		t.Fatal(err)
	}
	if c.NodeName != "flag" || c.StateDir != "/file" || c.ShutdownTimeout != time.Second || c.StatusUpdates.QPS != 2.5 {
		t.Errorf("got %+v, want the flags over the file over the defaults", c)
	}
}

func TestSocketsCanBeSwitchedOff(t *testing.T) {
	c := Default()
	c.StateDir = "/state"
	if got := c.QuerySocketPath() + " " + c.PodsSocketPath(); got != "/state/statusd.sock /state/pods.sock" {
		t.Errorf("got %s", got)
	}
	c.QuerySocket, c.PodsSocket = process.NoSocket, "/elsewhere/kubelet.sock"
	if got := c.QuerySocketPath() + " " + c.PodsSocketPath(); got != " /elsewhere/kubelet.sock" {
		t.Errorf("got %q", got)
	}
}

// docs/reference/settings-run.md has each setting as the default file has it.
func TestTableOfSettings_IsTheDefaultFile(t *testing.T) {
	configfiletest.PageHasTheSettings(t, file(), "../../docs/reference/settings-run.md")
}
