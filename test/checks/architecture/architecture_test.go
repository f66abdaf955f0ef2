package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/statusd/statusd"

// A layer may import the layers before it in this list, never its siblings or those
// after it, except for what a sibling is allowed by name.
var layers = []struct {
	name     string
	packages []string
}{
	{"rules", []string{"podstatus"}},
	{"test kit", []string{"statustest"}}, // imports no status, whose tests use it
	{"table", []string{"internal/node/pods"}},
	{"library", []string{"status", "journal", "internal/node/manifest", "internal/node/fit"}},
	{"volumes", []string{"internal/node/volume"}},
	{"runtime", []string{"runtime"}},              // the vocabulary that worker and probe speak
	{"sources", []string{"internal/node/source"}}, // the changes of pods that mirror observes
	{"node", []string{"internal/node/mirror", "internal/node/worker", "internal/node/probe", "node", "internal/node/eviction", "internal/node/shutdown", "internal/certs"}},
	{"product", []string{"explain", "internal/history"}},
	{"parts", []string{"internal/node/inside"}},                // the parts of a node, as the process around it needs them
	{"kit", []string{"agent"}},                                 // below all that a node can do without
	{"machine", []string{"internal/machine"}},                  // what logs and load of the machine say
	{"watchers", []string{"internal/audit", "internal/guard"}}, // whether a kubelet tells the truth, and whether it is healthy
	{"alert", []string{"internal/alert"}},                      // the types of alerts and silences
	{"view", []string{"internal/view"}},                        // what is known of a node, as it is read
	{"serving", []string{"internal/queryapi", "internal/podsapi", "kubeletapi", "internal/web", "internal/overview", "internal/doctor"}}, // what the product layer knows, over the network
	{"providers", []string{"virtualkubelet", "node/fleet"}},                                                                              // a whole node of a virtual-kubelet provider; many nodes in one process
	{"alert language", []string{"internal/alert/expr", "internal/alert/rulefile"}},                                                       // what rules can say, and how files say it
	{"alert rules", []string{"internal/alert/ruleset"}},                                                                                  // what an operator wants to know
	{"alert engine", []string{"internal/alert/engine"}},
	{"alert tests", []string{"internal/alert/ruletest"}},
	{"alert delivery", []string{"internal/alert/deliver"}},
	{"alert endpoints", []string{"internal/alert/endpoint"}},
	{"alert outputs", []string{"internal/alert/alertmanager", "internal/alert/webhook", "internal/alert/kubeoutputs"}},
	{"alert actions", []string{"internal/alert/actions"}},
	{"alerting", []string{"internal/alert/alertsetup"}},
	{"console", []string{"internal/process/console"}}, // what both processes show of their node
	{"process", []string{"internal/run", "internal/observer"}},
	{"command", []string{"cmd", "examples"}},
}

// forbidden lists what a package must not reach directly, and why.
var forbidden = []struct {
	under   string // the package and those below it
	imports []string
	why     string
	alone   bool // the package without those below it
}{
	{"podstatus", []string{"context", "io", "os", "net", "net/http", "sync", "sync/atomic", "log", "log/slog", "github.com/prometheus/client_golang", "k8s.io/client-go", "k8s.io/klog"},
		"the rules are pure functions: no clock, context, I/O, logger, metrics or goroutine; time comes in as an argument", false},
	{"internal/node/manifest", []string{"context", "io", "os", "net", "net/http", "sync", "sync/atomic", "time", "log", "log/slog", "github.com/prometheus/client_golang", "k8s.io/client-go", "k8s.io/klog"},
		"a manifest is decoded by pure functions: the caller reads the file and knows the time", false},
	{"internal/audit", []string{"context", "io", "os", "net", "net/http", "sync", "sync/atomic", "log", "log/slog", "github.com/prometheus/client_golang", "k8s.io/client-go", "k8s.io/klog"},
		"an audit is a pure function of the facts: the packages below it collect them, and the time is one of them", true},
	{"agent", []string{module + "/runtime/process"},
		"any runtime makes a node: which one it is, the program decides (cmd/statusd)", false},
	{"", []string{"k8s.io/kubernetes"},
		"the root module must stay importable: k8s.io/kubernetes belongs in the nested modules below test/", false},
}

type goPackage struct {
	ImportPath   string
	Doc          string
	Name         string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func list(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags=real", "-json=ImportPath,Doc,Name,GoFiles,Imports,TestImports,XTestImports", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []goPackage
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("decoding go list: %v", err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 2 {
		t.Fatalf("go list found %d packages; the test looks at nothing", len(packages))
	}
	return packages
}

// domain is the word of the layer table that a package belongs to: the longest one that the package is or is
// below. It is empty for a package that no layer lists.
func domain(importPath string) string {
	rest, own := strings.CutPrefix(importPath, module+"/")
	if !own {
		return "" // such as Go's own package runtime
	}
	longest := ""
	for _, l := range layers {
		for _, name := range l.packages {
			if under(rest, name) && len(name) > len(longest) {
				longest = name
			}
		}
	}
	return longest
}

func layerOf(domain string) int {
	for i, l := range layers {
		if slices.Contains(l.packages, domain) {
			return i
		}
	}
	return -1
}

// free reports whether a package is in no layer: a part that any layer may use, or a test with real parts.
func free(importPath string) bool {
	rest := strings.TrimPrefix(importPath, module+"/")
	return under(rest, "test") || under(rest, "internal") && !under(rest, "internal/node")
}

func under(importPath, prefix string) bool {
	return importPath == prefix || strings.HasPrefix(importPath, prefix+"/")
}

func TestImportsGoDownOnly(t *testing.T) {
	for _, p := range list(t) {
		from := domain(p.ImportPath)
		fromLayer := layerOf(from)
		if fromLayer < 0 && free(p.ImportPath) {
			continue
		}
		if fromLayer < 0 {
			t.Errorf("%s is in no layer: add it to the table in this test and to ARCHITECTURE.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			to := domain(imported)
			toLayer := layerOf(to)
			if toLayer < 0 || to == from {
				continue
			}
			switch {
			case toLayer > fromLayer:
				t.Errorf("%s (layer %s) imports %s (layer %s): imports go down only, so that a lower layer can be embedded without the upper one",
					p.ImportPath, layers[fromLayer].name, imported, layers[toLayer].name)
			case toLayer == fromLayer:
				t.Errorf("%s imports its sibling %s: siblings meet through small interfaces declared by the consumer, so that each can be replaced",
					p.ImportPath, imported)
			}
		}
	}
}

// A layer that lists what does not exist promises something to the reader of the table.
func TestEveryPackageOfALayerExists(t *testing.T) {
	exists := map[string]bool{}
	for _, p := range list(t) {
		exists[domain(p.ImportPath)] = true
	}
	for _, l := range layers {
		for _, name := range l.packages {
			if !exists[name] {
				t.Errorf("layer %s lists %s, and there is no such package: take it out of the table in this test and of ARCHITECTURE.md", l.name, name)
			}
		}
	}
}

func TestForbiddenImports(t *testing.T) {
	for _, p := range list(t) {
		for _, rule := range forbidden {
			if rule.under != "" && !under(p.ImportPath, path.Join(module, rule.under)) || rule.alone && p.ImportPath != path.Join(module, rule.under) {
				continue
			}
			imports := p.Imports
			if rule.under == "" { // holds for tests too
				imports = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			}
			for _, imported := range imports {
				for _, bad := range rule.imports {
					if imported == bad || (strings.Contains(bad, ".") && under(imported, bad)) {
						t.Errorf("%s imports %s: %s", p.ImportPath, imported, rule.why)
					}
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range list(t) {
		if len(p.GoFiles) > 0 && strings.TrimSpace(p.Doc) == "" {
			t.Errorf("%s has no package comment: add a doc.go with one sentence on what it is for", p.ImportPath)
		}
	}
}

func TestNoVagueNames(t *testing.T) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base"}
	for _, p := range list(t) {
		for element := range strings.SplitSeq(strings.TrimPrefix(p.ImportPath, module), "/") {
			if slices.Contains(vague, element) {
				t.Errorf("%s: %q says nothing about what lives there; name the package after its noun", p.ImportPath, element)
			}
		}
	}
}

// The tests above are only worth something if the checks can fail.
func TestLayerTableSeesViolations(t *testing.T) {
	cases := []struct{ from, to string }{{"podstatus", "status"}, {"status", "internal/node/worker"}, {"journal", "agent"}, {"agent", "kubeletapi"}}
	for _, c := range cases {
		if layerOf(c.from) >= layerOf(c.to) {
			t.Errorf("layer table lets %s import %s", c.from, c.to)
		}
	}
	if got := fmt.Sprint(layerOf("status") == layerOf("journal")); got != "true" {
		t.Error("status and journal must be siblings")
	}
}
