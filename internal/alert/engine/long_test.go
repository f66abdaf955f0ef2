//go:build !race

package engine

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// A state file that is cut or damaged anywhere loses at most the lines that were hit.
func TestADamagedStateFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "alerts")
		node := newLive()
		options := Options{Source: node, Set: parsed(t, rulesForTests), StateFile: file}
		for i := range 3 {
			node.put(t, phase(fmt.Sprint("web-", i), "Unknown"))
		}
		_, stop := started(t, options)
		stop()
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for at := range whole {
			for _, data := range [][]byte{whole[:at], append(append(append([]byte{}, whole[:at]...), whole[at]^1), whole[at+1:]...)} {
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
				e, err := New(options)
				if err != nil {
					t.Fatal(err)
				}
				e.file.close()
				if got := len(e.Alerts()); len(data) == len(whole) && got < 1 {
					t.Fatalf("one bit at %d: %d alerts are left", at, got)
				}
			}
		}
	})
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
