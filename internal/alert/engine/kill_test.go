package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// An engine is killed 100 times while alerts come and go: no output misses an alert that it was to get, and in the end
// each knows what is true.
func TestKill9_NoAlertIsLost(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	world := map[string]string{}
	told := map[string]bool{}
	const rounds = 100
	for round := range rounds + 1 {
		for range random.IntN(3) { // what happens while nothing runs
			world[fmt.Sprint("web-", random.IntN(8))] = []string{"Unknown", "Running"}[random.IntN(2)]
		}
		data, err := json.Marshal(world)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "world"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+dir)
		child.Stderr = os.Stderr
		in, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		note := func() bool {
			if !lines.Scan() {
				return false
			}
			told[strings.TrimPrefix(lines.Text(), "told ")] = true
			return true
		}
		if round < rounds {
			drive(t, random, world, in, note)
			if err := child.Process.Kill(); err != nil { // SIGKILL
				t.Fatal(err)
			}
		} else if _, err := fmt.Fprintln(in, lastPod, "Unknown"); err != nil {
			t.Fatal(err)
		}
		for note() { // until its end
		}
		if err := child.Wait(); err != nil && round == rounds {
			t.Fatal(err)
		}
	}
	verifyDelivered(t, filepath.Join(dir, "delivered"), world, told)
}

// drive changes pods, and ends while the output is at work.
func drive(t *testing.T, random *rand.Rand, world map[string]string, in io.Writer, note func() bool) {
	for range 1 + random.IntN(4) {
		name := fmt.Sprint("web-", random.IntN(8))
		world[name] = map[string]string{"Unknown": "Running"}[world[name]]
		if world[name] == "" {
			world[name] = "Unknown"
		}
		if _, err := fmt.Fprintln(in, name, world[name]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fmt.Fprintln(in, "mark Unknown"); err != nil { // an alert for sure
		t.Fatal(err)
	}
	if world["mark"] != "Unknown" {
		note()
	}
	world["mark"] = "Unknown"
	if _, err := fmt.Fprintln(in, "mark Running"); err != nil {
		t.Fatal(err)
	}
	world["mark"] = "Running"
}

func verifyDelivered(t *testing.T, file string, world map[string]string, told map[string]bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	delivered, last := map[string]bool{}, map[string]string{}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		delivered[words[0]+" "+words[1]] = true
		last[words[0]] = words[2]
	}
	for e := range told {
		if !delivered[e] {
			t.Errorf("alert %s was lost", e)
		}
	}
	for name, phase := range world {
		if want := map[string]string{"Unknown": "firing", "Running": "resolved"}[phase]; last[name] != want && (last[name] != "" || want == "firing") {
			t.Errorf("%s is %s, and the last that was delivered is %q", name, phase, last[name])
		}
	}
	t.Logf("%d alerts, %d lines delivered", len(told), strings.Count(string(data), "\n"))
}
