package agent

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
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

func TestBadConfigFilesAreNamedWithTheirLine(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"unknown field", header + "nodeNmae: n1\n", `config: f.yaml:3: unknown field "nodeNmae"; statusd config default lists those there are`},
		{"unknown field inside", header + "log:\n  format: text\n  colour: red\n", `config: f.yaml:5: unknown field "colour"; statusd config default lists those there are`},
		{"wrong type", header + "node:\n  maxPods: many\n", "config: f.yaml:4: cannot unmarshal !!str `many` into int"},
		{"wrong duration", header + "shutdownTimeout: soon\n", "config: f.yaml:3: cannot unmarshal !!str `soon` into time.Duration"},
		{"twice", header + "nodeName: a\nnodeName: b\n", `config: f.yaml:4: mapping key "nodeName" already defined at line 3`},
		{"empty", "", `config: f.yaml: is apiVersion "", kind ""; want apiVersion: statusd/v1alpha1, kind: StatusdConfiguration`},
		{"another version", "apiVersion: statusd/v2\nkind: StatusdConfiguration\n", `config: f.yaml: is apiVersion "statusd/v2", kind "StatusdConfiguration"; want apiVersion: statusd/v1alpha1, kind: StatusdConfiguration`},
		{"two documents", header + "---\n" + header, "config: f.yaml: holds more than one document; a config file is one"},
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
		{"manifestsRescan", func(c *Config) { c.ManifestsRescan = 0 }},
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
		{"statusUpdates.burst", func(c *Config) { c.StatusUpdates.Burst = -1 }},
		{"containerLogs.maxBytes", func(c *Config) { c.ContainerLogs.MaxBytes = 1 }},
		{"containerLogs.maxFiles", func(c *Config) { c.ContainerLogs.MaxFiles = 0 }},
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

// What "config default" prints is a config file, it is the default one, and it has a
// comment for each field: one that is added to Config and not to the settings fails here.
func TestDefaultFileSaysEverythingThereIs(t *testing.T) {
	var out bytes.Buffer
	if err := WriteDefault(&out); err != nil {
		t.Fatal(err)
	}
	c, err := Load("default", out.Bytes())
	if err != nil {
		t.Fatalf("what is printed cannot be read: %v\n%s", err, out.String())
	}
	if want := Default(); !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
	var documented []string
	for _, s := range settings(&c) {
		documented = append(documented, s.Path)
		if s.Doc == "" && s.Path != "kind" {
			t.Errorf("%s has no explanation", s.Path)
		}
	}
	if want := leaves(reflect.TypeFor[Config](), ""); !slices.Equal(documented, want) {
		t.Errorf("settings\n%v\nwant one for each field of Config\n%v", documented, want)
	}
}

func leaves(t reflect.Type, prefix string) []string {
	var paths []string
	for field := range t.Fields() {
		path := prefix + field.Tag.Get("yaml")
		if field.Type.Kind() == reflect.Struct {
			paths = append(paths, leaves(field.Type, path+".")...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

func TestFlagsOverrideTheFile(t *testing.T) {
	c, err := Load("f.yaml", []byte(header+"nodeName: file\nstateDir: /file\n"))
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.AddFlags(flags)
	if err := flags.Parse([]string{"--node-name=flag", "--shutdown-timeout=1s", "--kube-api-qps=2.5", "--kube-api-burst=3"}); err != nil {
		t.Fatal(err)
	}
	if c.NodeName != "flag" || c.StateDir != "/file" || c.ShutdownTimeout != time.Second || c.StatusUpdates.QPS != 2.5 || c.StatusUpdates.Burst != 3 {
		t.Errorf("got %+v, want the flags over the file over the defaults", c)
	}
}

func TestTaintsAndReservedResources(t *testing.T) {
	n := NodeConfig{Taints: []string{"a=b:NoSchedule", "c:NoExecute"}, Reserved: map[string]string{"cpu": "500m"}}
	taints, reserved := n.taints(), n.reserved()
	if len(taints) != 2 || taints[0].ToString() != "a=b:NoSchedule" || taints[1].ToString() != "c:NoExecute" {
		t.Errorf("got taints %v", taints)
	}
	if q := reserved.Cpu(); q.MilliValue() != 500 {
		t.Errorf("got %v reserved, want 500m of cpu", reserved)
	}
}
