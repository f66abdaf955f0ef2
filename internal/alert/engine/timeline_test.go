package engine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	yaml "go.yaml.in/yaml/v3"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// Timelines are stories of a node: each command answers with the alerts that were passed on, with the time since the start.
//
//	rules                       start, or reload, with these rules; pack: the starter pack
//	put                         what becomes known, as a step of a test of rules
//	wait DURATION               let time pass
//	alerts                      the alerts that there are
//	silence NAME=VALUE for=D    keep alerts with this label from the outputs
//	expire                      end the silences
//	restart [down=DURATION]     stop the engine, and start it again over the same file
func TestTimelines(t *testing.T) {
	datadriven.Walk(t, "testdata/timelines", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			s := &story{node: newLive(), out: &sink{name: "out", began: time.Now()}}
			s.options = Options{Source: s.node, Outputs: []Output{s.out}, StateFile: filepath.Join(t.TempDir(), "alerts")}
			defer func() {
				if s.stop != nil {
					s.stop()
				}
			}()
			datadriven.RunTest(t, path, s.command)
		})
	})
}

type story struct {
	node    *live
	out     *sink
	options Options
	engine  *Engine
	stop    func()
}

func (s *story) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "rules":
		set := ruleset.Pack()
		if !d.HasArg("pack") {
			set = parsed(t, "apiVersion: statusd/v1alpha1\nkind: Rules\ngroups: [{name: g, rules: [\n"+strings.Join(strings.Split(d.Input, "\n"), ",\n")+"\n]}]")
		}
		s.options.Set = set
		if s.engine == nil {
			s.engine, s.stop = started(t, s.options)
		} else {
			s.engine.Reload(set)
		}
	case "put":
		for _, step := range strings.Split(d.Input, "\n") {
			what := map[string]any{}
			if err := yaml.Unmarshal([]byte(step), &what); err != nil {
				d.Fatalf(t, "%v", err)
			}
			s.node.put(t, what)
		}
	case "wait":
		time.Sleep(length(t, d, d.CmdArgs[0].Key))
	case "alerts":
		return s.alerts()
	case "silence":
		var until string
		d.ScanArgs(t, "for", &until)
		_, err := s.engine.Silence(alert.Silence{Matchers: []alert.Matcher{{Name: d.CmdArgs[0].Key, Value: d.CmdArgs[0].Vals[0], IsEqual: true}}, Until: time.Now().Add(length(t, d, until))})
		if err != nil {
			return err.Error() + "\n"
		}
	case "expire":
		for _, silence := range s.engine.Silences() {
			if err := s.engine.Expire(silence.ID); err != nil {
				return err.Error() + "\n"
			}
		}
	case "restart":
		s.stop()
		if d.HasArg("down") {
			var down string
			d.ScanArgs(t, "down", &down)
			time.Sleep(length(t, d, down))
		}
		s.engine, s.stop = started(t, s.options)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	if got := s.out.take(); got != "" {
		return got + "\n"
	}
	return ""
}

func length(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	duration, err := rulefile.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return duration
}

func (s *story) alerts() string {
	synctest.Wait()
	var b strings.Builder
	for _, a := range s.engine.Alerts() {
		fmt.Fprintf(&b, "%s %s %s%s since %v", a.Rule, a.State, a.Pod, a.Container, a.Since.Sub(s.node.began.Round(0)))
		if a.Silenced != "" {
			b.WriteString(" silenced")
		}
		if summary := a.Annotations["summary"]; summary != "" {
			b.WriteString(": " + summary)
		}
		b.WriteString("\n")
	}
	return b.String()
}
