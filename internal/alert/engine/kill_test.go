package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
)

// childVariable names the directory of the process that TestKill9 kills.
const childVariable = "RULES_TEST_CHILD"

const killRules = `
apiVersion: statusd/v1alpha1
kind: Rules
groups: [{name: g, rules: [{name: Unknown, expr: pod.phase == "Unknown", severity: info}]}]
`

// childPods is a source of pods that are in a phase.
type childPods struct {
	*live
	announced chan func(types.UID)
}

func (c *childPods) Watch(ctx context.Context, changed func(types.UID)) error {
	c.announced <- changed
	<-ctx.Done()
	return nil
}

// put brings a pod into a phase and returns its UID.
func (c *childPods) put(name, to string) types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, err := c.Take(scene.Step{What: phase(name, to)})
	must(err)
	return changed[0]
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// appender is an output that delivers slowly: it appends a line to a file.
type appender struct {
	file  *os.File
	queue chan Notification
}

func (a *appender) Name() string { return "appender" }

func (a *appender) Notify(n Notification) {
	fmt.Println("told", episode(n.Alert))
	a.queue <- n
}

func (a *appender) run() {
	for n := range a.queue {
		time.Sleep(time.Millisecond)
		if _, err := fmt.Fprintln(a.file, episode(n.Alert), n.Alert.State); err != nil {
			panic(err)
		}
		n.Done()
	}
}

// episode is one alert from its begin to its end.
func episode(a alert.Alert) string { return fmt.Sprint(a.Pod, " ", a.Since.UnixNano()) }

// childMain runs an engine over pods in the phases that a file has and standard input changes.
func childMain(dir string) {
	set, err := ruleset.Parse("rules.yaml", []byte(killRules))
	must(err)
	source := &childPods{newLive(), make(chan func(types.UID), 1)}
	data, err := os.ReadFile(filepath.Join(dir, "world"))
	must(err)
	world := map[string]string{}
	must(json.Unmarshal(data, &world))
	for _, name := range slices.Sorted(maps.Keys(world)) {
		source.put(name, world[name])
	}
	file, err := os.OpenFile(filepath.Join(dir, "delivered"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	out := &appender{file, make(chan Notification, 10_000)}
	e, err := New(Options{Source: source, Set: set, StateFile: filepath.Join(dir, "state"), Outputs: []Output{out}})
	must(err)
	go out.run()
	go func() { must(e.Run(context.Background())) }()
	changed := <-source.announced
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		name, to, _ := strings.Cut(lines.Text(), " ")
		changed(source.put(name, to))
		if name == lastPod {
			for !e.settled() {
				time.Sleep(time.Millisecond)
			}
			os.Exit(0)
		}
	}
}

// lastPod is the pod whose change is the last one of a child that is not killed.
const lastPod = "last"

// settled reports whether the engine has looked at everything, the last pod included, and all is delivered. Without that pod
// an engine that has not begun would be one with nothing to do.
func (e *Engine) settled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inbox.Lock()
	defer e.inbox.Unlock()
	last := false
	for id, a := range e.core.alerts {
		if len(a.done) == 0 {
			return false
		}
		last = last || id.uid == "default."+lastPod
	}
	return last && len(e.inbox.queue)+len(e.inbox.backlog)+len(e.core.ended)+len(e.core.unsaved)+len(e.core.deliveries) == 0
}
