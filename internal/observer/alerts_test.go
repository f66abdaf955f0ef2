package observer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/actions"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/history"
	model "github.com/statusd/statusd/internal/view"
)

const driftRule = `apiVersion: statusd/v1alpha1
kind: Rules
groups: [{name: test, rules: [{name: NotTrue, expr: pod.drift > 0, severity: critical, actions: [{action: evict, dryRun: true}]}]}]
`

// Beside a kubelet rules see drift; what they do is in the history, and nothing is written unless it is switched on.
func TestDriftIsAnAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		uid := w.add("web")
		file := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(file, []byte(driftRule), 0o600); err != nil {
			t.Fatal(err)
		}
		o := w.observer(func(c *Config) {
			c.Rules.Files = []string{file}
			c.Rules.Actions = map[ruleset.ActionKind]actions.Limits{ruleset.ActionEvict: {}}
		})
		stop := w.run(o)
		time.Sleep(time.Minute)
		w.freeze(true)
		w.kill("web")
		time.Sleep(30 * time.Second)
		alerts := o.console.Alerts().Alerts()
		if len(alerts) != 1 || alerts[0].State != alert.Firing || alerts[0].UID != uid || len(alerts[0].Actions) != 1 || alerts[0].Actions[0].Result != actions.DryRun {
			t.Fatalf("alerts: %+v, want that of web with a dry run", alerts)
		}
		past, _ := o.console.Source().History("shop", "web")
		if !slices.ContainsFunc(past.Records, func(r model.Record) bool { return r.Kind == history.KindAction && r.Reason == "NotTrue" }) {
			t.Errorf("the action is not in the history: %+v", past.Records)
		}
		w.freeze(false)
		w.report("web")
		time.Sleep(30 * time.Second)
		if alerts := o.console.Alerts().Alerts(); len(alerts) != 1 || alerts[0].State != alert.Resolved {
			t.Errorf("alerts: %+v, want it resolved", alerts)
		}
		for _, action := range w.client.Actions() {
			if verb := action.GetVerb(); action.GetResource().Resource != "events" && verb != "get" && verb != "list" && verb != "watch" {
				t.Errorf("%s %s was written", verb, action.GetResource().Resource)
			}
		}
		stop()
	})
}
