package engine

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/internal/alert"
)

// An output that knows an alert as silenced learns after the restart that the silence has ended meanwhile, and the other way around.
func TestASilenceThatEndsWhileNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		options := Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}, StateFile: filepath.Join(t.TempDir(), "alerts")}
		e, stop := started(t, options)
		node.put(t, phase("web", "Unknown"))
		expect(t, "fires", out.take(), "0s Kept firing web")
		if _, err := e.Silence(alert.Silence{Matchers: []alert.Matcher{{Name: "pod", Value: "web", IsEqual: true}}, Until: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		expect(t, "silenced", out.take(), "0s Kept firing web again silenced")
		stop()
		_, stop = started(t, options)
		expect(t, "the silence lasts", out.take(), "0s Kept firing web again silenced")
		stop()
		time.Sleep(time.Hour)
		e, stop = started(t, options)
		defer stop()
		expect(t, "the silence has ended", out.take(), "1h0m0s Kept firing web again")
		if list := e.Alerts(); len(list) != 1 || list[0].Silenced != "" {
			t.Errorf("got %+v", list)
		}
	})
}

// What was pending, or about to end, when the clock was set back while nothing ran does not wait for the old time of day.
func TestAClockThatWasSetBackWhileNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		options := Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}, StateFile: filepath.Join(t.TempDir(), "alerts")}
		node.put(t, phase("web", "Failed"))
		node.put(t, phase("other", "Unknown"))
		_, stop := started(t, options)
		node.put(t, phase("other", "Running"))
		stop()
		out.take()

		lines, _, err := readState(options.StateFile)
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		for _, l := range lines { // as a process would have written them whose clock was ahead
			if l.Alert != nil {
				l.Alert.Since = l.Alert.Since.Add(10 * time.Hour)
				if !l.Alert.Over.IsZero() {
					l.Alert.Over = l.Alert.Over.Add(10 * time.Hour)
				}
			}
			if data, err = l.append(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(options.StateFile, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, stop = started(t, options)
		defer stop()
		expect(t, "restored", out.take(), "0s Kept firing other again")
		time.Sleep(10 * time.Second)
		expect(t, "pending for its time from now on", out.take(), "10s Failed firing web")
		time.Sleep(10 * time.Second)
		expect(t, "kept for its time from now on", out.take(), "20s Kept resolved other")
	})
}

// A disk that takes no writes when the engine begins keeps no rule from being evaluated. What is known is written once it takes them.
func TestADiskThatTakesNoWritesAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		options := Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}, StateFile: filepath.Join(t.TempDir(), "alerts")}
		full := true
		options.create = func(dir, pattern string) (*os.File, error) {
			if full {
				return nil, &os.PathError{Op: "open", Path: dir, Err: syscall.ENOSPC}
			}
			return os.CreateTemp(dir, pattern)
		}
		node.put(t, phase("web", "Unknown"))
		_, stop := started(t, options)
		expect(t, "fires", out.take(), "0s Kept firing web")
		full = false
		node.put(t, phase("other", "Unknown"))
		expect(t, "fires", out.take(), "0s Kept firing other")
		lines, broken, err := readState(options.StateFile)
		if err != nil || broken > 0 {
			t.Errorf("got %d broken lines, %v", broken, err)
		}
		written := map[string]bool{}
		for _, l := range lines {
			if l.Alert != nil {
				written[l.Alert.Pod] = true
			}
		}
		if !written["web"] || !written["other"] {
			t.Errorf("got %v", written)
		}
		stop()
	})
}

// A rule whose labels were changed while nothing ran begins new alerts, as with a reload.
func TestARestartWithOtherLabelsResolves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		options := Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}, StateFile: filepath.Join(t.TempDir(), "alerts")}
		node.put(t, phase("web", "Failed"))
		_, stop := started(t, options)
		time.Sleep(10 * time.Second)
		expect(t, "fires", out.take(), "10s Failed firing web")
		stop()
		options.Set = parsed(t, strings.ReplaceAll(rulesForTests, "team:", "crew:"))
		e, stop := started(t, options)
		defer stop()
		expect(t, "resolved", out.take(), "10s Failed firing web again\n10s Failed resolved web")
		time.Sleep(10 * time.Second)
		expect(t, "fires", out.take(), "20s Failed firing web")
		if list := e.Alerts(); list[0].Labels["crew"] != "webs" {
			t.Errorf("got %+v", list)
		}
	})
}
