package probe

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/runtime"
)

// TestTraces reads testdata/traces/*.txt: each file is one life of a prober in virtual time. Run
// with -rewrite to record what it does now.
//
//	pod NAME                  add a pod; the probes of its container follow as YAML
//	run NAME ID               its container runs from now on, under this ID
//	exit NAME                 its container ends
//	answer NAME KIND=ANSWER   success, failure, warning, error, hang, or (ANSWER,after,DURATION)
//	wait DURATION             let time pass
//	ending NAME, remove NAME  the pod is being stopped, is gone
//	restart                   kill the agent, and start it again
//	status NAME               what the pod's worker reports now
//
// Each answers with what was probed and told meanwhile.
func TestTraces(t *testing.T) {
	datadriven.Walk(t, "testdata/traces", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			var w *world
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if w == nil {
					w = newWorld(t, nil)
				}
				return w.command(t, d)
			})
		})
	})
}

func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	arg := func(i int) string {
		if i >= len(d.CmdArgs) {
			d.Fatalf(t, "%s needs more arguments", d.Cmd)
		}
		return d.CmdArgs[i].Key
	}
	switch d.Cmd {
	case "pod":
		w.add(arg(0), probes(t, d))
	case "run":
		w.run(arg(0), arg(1))
	case "exit":
		w.exit(arg(0))
	case "answer":
		w.answer(arg(0), runtime.ProbeKind(arg(1)), strings.Join(d.CmdArgs[1].Vals, " "))
	case "ending":
		w.prober.StopLivenessAndStartup(types.UID(arg(0)))
	case "remove":
		w.prober.RemovePod(types.UID(arg(0)))
	case "restart":
		w.restart()
	case "status":
		return describe(w.status(arg(0)))
	case "wait":
		return w.passes(t, d, arg(0))
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	synctest.Wait()
	return strings.Join(w.diary(), "\n")
}

// probes reads the probes of a container. Each is an exec of its own kind.
func probes(t *testing.T, d *datadriven.TestData) v1.Container {
	var c v1.Container
	if err := yaml.UnmarshalStrict([]byte(d.Input), &c); err != nil {
		d.Fatalf(t, "reading probes: %v", err)
	}
	return withHandlers(c)
}

func withHandlers(c v1.Container) v1.Container {
	for kind, p := range map[runtime.ProbeKind]*v1.Probe{runtime.StartupProbe: c.StartupProbe, runtime.ReadinessProbe: c.ReadinessProbe, runtime.LivenessProbe: c.LivenessProbe} {
		if p != nil {
			p.Exec = &v1.ExecAction{Command: []string{string(kind)}}
		}
	}
	return c
}

// passes lets time pass second by second, to say when things happened.
func (w *world) passes(t *testing.T, d *datadriven.TestData, text string) string {
	total, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "wait: %v", err)
	}
	var lines []string
	for at := time.Duration(0); at < total; {
		step := min(total-at, time.Second)
		w.wait(step)
		at += step
		for _, told := range w.diary() {
			lines = append(lines, fmt.Sprintf("+%v %s", at, told))
		}
	}
	return strings.Join(lines, "\n")
}
