package alertsetup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/actions"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nothing is a node without pods.
type nothing struct{}

func (nothing) UIDs() []types.UID                                  { return nil }
func (nothing) Pod(types.UID) (view.Pod, bool)                     { return view.Pod{}, false }
func (nothing) Gone() []view.PodHistory                            { return nil }
func (nothing) History(_, _ string) (view.PodHistory, bool)        { return view.PodHistory{}, true }
func (nothing) Node() view.NodeDetail                              { return view.NodeDetail{Name: "n1"} }
func (nothing) Watch(ctx context.Context, _ func(types.UID)) error { <-ctx.Done(); return nil }

const always = `apiVersion: statusd/v1alpha1
kind: Rules
groups: [{name: g, rules: [{name: %s, scope: node, expr: 'true', severity: info}]}]
`

func write(t *testing.T, path, rule string) {
	t.Helper()
	if err := os.WriteFile(path, fmt.Appendf(nil, always, rule), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRulesAreReloadedWhenTheirFilesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := t.TempDir()
		write(t, filepath.Join(directory, "a.yaml"), "First")
		c := Default()
		c.Files = []string{directory}
		a, err := New(c, Process{Source: nothing{}, Node: "n1", StateDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		expect := func(what string, want ...string) {
			t.Helper()
			for range 3 { // the files are looked at, then the rules
				wait()
			}
			var got []string
			for _, raised := range a.Alerts() {
				if raised.State == alert.Firing {
					got = append(got, raised.Rule)
				}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: %v fire, want %v", what, got, want)
			}
		}
		expect("at first", "First")
		write(t, filepath.Join(directory, "b.yaml"), "Second")
		expect("with another file", "First", "Second")
		if err := os.WriteFile(filepath.Join(directory, "a.yaml"), []byte("no: rules"), 0o600); err != nil {
			t.Fatal(err)
		}
		expect("with a mistake", "First", "Second")
		if err := os.Remove(filepath.Join(directory, "a.yaml")); err != nil {
			t.Fatal(err)
		}
		expect("without the first file", "Second")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A file that changes after the rules were read, and before their files are followed, is read again.
func TestAFileThatChangesDuringTheStartIsReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "a.yaml")
		write(t, file, "First")
		a, err := New(Config{Files: []string{file}}, Process{Source: nothing{}, Node: "n1", StateDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, "Another")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		for range 3 { // the files are looked at, then the rules
			wait()
		}
		if got := a.Alerts(); !slices.ContainsFunc(got, func(alert alert.Alert) bool { return alert.Rule == "Another" }) {
			t.Errorf("got %+v, want an alert of the rule that is in the file now", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestPackAndFilesTogether(t *testing.T) {
	pack := ruleset.Pack().Rules()
	replaced := pack[0].Name
	file := filepath.Join(t.TempDir(), "a.yaml")
	write(t, file, replaced)
	c := Config{Pack: true, Files: []string{file}}
	set, err := c.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Rules()) != len(pack) || set.Rule(replaced).Expr != "true" {
		t.Errorf("%d rules, %s is %q; want %d and that of the file", len(set.Rules()), replaced, set.Rule(replaced).Expr, len(pack))
	}
}

func TestWrongConfigs(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{Actions: actions.Policy{ruleset.ActionEvict: {}}}, "no rules"},
		{Config{Pack: true, Actions: actions.Policy{ruleset.ActionEvict: {Budget: new(-1)}}}, "negative"},
		{Config{Files: []string{""}}, "rules.files[0]"},
	} {
		var problems []string
		test.config.Validate(func(field, format string, args ...any) {
			problems = append(problems, field+": "+fmt.Sprintf(format, args...))
		})
		if got := strings.Join(problems, "\n"); !strings.Contains(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestWrongOutputs(t *testing.T) {
	for _, test := range []struct {
		outputs Outputs
		rules   bool
		want    string
	}{
		{Outputs{Alertmanagers: []endpoint.Options{{URL: "http://a"}, {URL: "http://a"}}}, true, "outputs.alertmanagers[1]: http://a is there twice"},
		{Outputs{Webhooks: []Webhook{{Options: endpoint.Options{URL: "http://a"}}}}, true, "outputs.webhooks[0].name"},
		{Outputs{Alertmanagers: []endpoint.Options{{URL: "http://a"}}}, false, "no rules"},
	} {
		var problems []string
		test.outputs.Validate(test.rules, func(field, format string, args ...any) {
			problems = append(problems, field+": "+fmt.Sprintf(format, args...))
		})
		if got := strings.Join(problems, "\n"); !strings.Contains(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
