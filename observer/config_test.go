package observer

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What "config default --observe" prints is a config file, it is the default one, and it has a comment for
// each field: one that is added to Config and not to the settings fails here.
func TestDefaultFileSaysEverythingThereIs(t *testing.T) {
	var out bytes.Buffer
	if err := WriteDefault(&out); err != nil {
		t.Fatal(err)
	}
	c, err := Load("default", out.Bytes())
	if err != nil {
		t.Fatalf("what is printed cannot be read: %v\n%s", err, out.String())
	}
	want := Default()
	for _, pair := range [][2]*string{{&want.StateDir, &c.StateDir}, {&want.HostRoot, &c.HostRoot}} {
		if *pair[0] != *pair[1] {
			t.Errorf("got %s, want %s", *pair[1], *pair[0])
		}
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("the default is not valid: %v", err)
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

// By default nothing is written and nothing is repaired.
func TestTheDefaultIsReadOnly(t *testing.T) {
	if c := Default(); c.Events || c.NodeCondition || len(c.Repair.Kinds) > 0 {
		t.Errorf("the default writes: %+v", c)
	}
}

func TestWhatIsWrongWithAConfigIsSaidWithItsField(t *testing.T) {
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
		{"pace", func(c *Config) { c.Kubelet.Pace = 0 }, "config: kubelet.pace: 0s: want a time above zero"},
		{"no way to the kubelet", func(c *Config) { c.Kubelet.URL, c.Kubelet.PodsSocket = "", "none" }, "config: kubelet.url: is empty, and there is no podsSocket"},
		{"plain http", func(c *Config) { c.Kubelet.URL = "http://127.0.0.1:10255" }, `config: kubelet.url: "http://127.0.0.1:10255": want https://HOST:PORT`},
		{"half a certificate", func(c *Config) { c.Kubelet.CertFile = "/c" }, "config: kubelet.certFile: and keyFile need each other"},
		{"repair", func(c *Config) { c.Repair.Kinds = []string{"ClockSkew"} }, `config: repair.kinds[0]: "ClockSkew": want one of `},
		{"budget", func(c *Config) { c.Repair.Budget = 0 }, "config: repair.budget: 0: want at least 1"},
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
		"apiVersion: statusd/v1alpha1\nkind: StatusdConfiguration\n":              "want apiVersion: statusd/v1alpha1, kind: ObserveConfiguration",
		"apiVersion: statusd/v1alpha1\nkind: ObserveConfiguration\ncriPase: 1s\n": `c.yaml:3: unknown field "criPase"; statusd config default --observe lists those there are`,
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

var rewrite = flag.Bool("rewrite", false, "write the table of settings as it is now")

// docs/observe-settings.md has each setting as the config file has it.
func TestTheTableOfSettingsIsTrue(t *testing.T) {
	const file, begin, end = "../docs/observe-settings.md", "<!-- settings -->\n", "<!-- end of settings -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatal("docs/observe-settings.md has no place for the table")
	}
	var table bytes.Buffer
	if err := WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	want := before + begin + table.String() + end + after
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Error("docs/observe-settings.md is not as the settings are; run with -rewrite")
	}
}
