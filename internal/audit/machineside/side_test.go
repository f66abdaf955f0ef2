package machineside

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/hostproc"
	"github.com/statusd/statusd/test/background"
)

// changes are the UIDs that Changed was called with.
type changes struct {
	mu   sync.Mutex // guards uids
	uids []types.UID
}

func (c *changes) add(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uids = append(c.uids, uid)
}

// take returns those since the last call.
func (c *changes) take() []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.uids
	c.uids = nil
	return taken
}

// run runs a side until the test ends.
func run(t *testing.T, o Options) (*Side, *changes) {
	t.Helper()
	changed := &changes{}
	o.Changed = changed.add
	side, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if side.Facts().MachineAnswer.Known() {
		t.Error("known before the first look")
	}
	background.Run(t, side.Run)
	return side, changed
}

func TestAMachineThatCannotBeReadKeepsItsFacts(t *testing.T) {
	f := newTree(t)
	f.dir(podDir(apiUID))
	synctest.Test(t, func(t *testing.T) {
		side, changed := run(t, f.options())
		synctest.Wait()
		first := side.Facts()
		if uids := changed.take(); !first.MachineAnswer.Known() || len(first.PodDirs) != 1 || len(uids) != 2 {
			t.Fatalf("got %+v, changed %q", first, uids)
		}

		table := filepath.Join(f.root, "proc/1/mountinfo")
		if err := os.Rename(table, table+".away"); err != nil {
			t.Fatal(err)
		}
		side.Refresh()
		time.Sleep(DefaultLeast)
		synctest.Wait()
		silent := side.Facts()
		if silent.MachineAnswer.Known() || silent.MachineAnswer.Silent.IsZero() || len(silent.PodDirs) != 1 || !silent.MachineAnswer.At.Equal(first.MachineAnswer.At) {
			t.Errorf("got %+v, want the last facts and why they are old", silent)
		}

		if err := os.Rename(table+".away", table); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(f.root, podDir(apiUID))); err != nil {
			t.Fatal(err)
		}
		changed.take()
		time.Sleep(DefaultPace)
		synctest.Wait()
		if back, uids := side.Facts(), changed.take(); !back.MachineAnswer.Known() || len(back.PodDirs) != 0 || len(uids) != 2 {
			t.Errorf("got %+v, changed %q, want it back without the pod", back, uids)
		}
		if len(first.PodDirs) != 1 {
			t.Error("the facts that were handed out have changed")
		}
	})
}

func TestNothingChangesOnAQuietMachine(t *testing.T) {
	f := newTree(t)
	f.write(podDir(apiUID)+"/volumes/p/v/file", "x")
	f.write("/sys/fs/cgroup/kubepods/pod"+apiUID+"/cgroup.procs", "1\n")
	f.write("/etc/kubernetes/manifests/a.yaml", "kind: Pod\nmetadata: {name: a}")
	f.process("400", "kubelet", "S", "20000")
	synctest.Test(t, func(t *testing.T) {
		side, changed := run(t, f.options())
		synctest.Wait()
		first := side.Facts()
		changed.take()
		time.Sleep(time.Hour)
		synctest.Wait()
		last := side.Facts()
		if uids := changed.take(); len(uids) != 0 {
			t.Errorf("changed %q, want nothing", uids)
		}
		if !last.PodDirs[apiUID].At.Equal(first.PodDirs[apiUID].At) || !last.MachineAnswer.At.After(first.MachineAnswer.At) || !last.MachineAnswer.Since.Equal(first.MachineAnswer.Since) {
			t.Errorf("got %+v after %+v", last, first)
		}
	})
}

func TestOptionsThatCannotBe(t *testing.T) {
	for want, o := range map[string]Options{
		"no Node":     {},
		"KubeletRoot": {Node: "n", KubeletRoot: "relative"},
		"pace":        {Node: "n", Pace: time.Second, Least: time.Minute},
		"MaxEntries":  {Node: "n", MaxEntries: -1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", o, err, want)
		}
	}
}

// A file system that hangs makes the machine unknown; the reading that hangs is the only one.
func TestAReadingThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		side, err := New(newTree(t).options())
		if err != nil {
			t.Fatal(err)
		}
		hangs, readings := make(chan struct{}), 0
		side.read = func(time.Time) (reading, error) {
			if readings++; readings == 2 {
				<-hangs
			}
			return reading{facts: audit.Machine{PodDirs: map[types.UID]audit.PodDir{apiUID: {Path: strings.Repeat("x", readings)}}}}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- side.Run(ctx) }()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if facts := side.Facts(); facts.MachineAnswer.Known() || !strings.Contains(facts.MachineAnswer.Err, "hangs") || facts.PodDirs[apiUID].Path != "x" || readings != 2 {
			t.Errorf("got %+v after %d readings, want the first facts", facts, readings)
		}
		close(hangs)
		time.Sleep(time.Minute)
		synctest.Wait()
		if facts := side.Facts(); !facts.MachineAnswer.Known() || readings < 3 {
			t.Errorf("got %+v after %d readings, want an answer", facts.MachineAnswer, readings)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTheKubeletIsNotLookedForWhileItLives(t *testing.T) {
	f := newTree(t)
	f.process("400", "kubelet", "S", "20000")
	o := f.options()
	o.setDefaults()
	first, err := read(o, hostproc.Process{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	f.process("100", "kubelet", "S", "10000") // cannot be: it is older than the one that was the oldest
	if second, err := read(o, first.process, time.Now()); err != nil || second.facts.Process.PID != 400 {
		t.Errorf("got %+v, %v, want the same process", second.facts.Process, err)
	}
	f.process("400", "kubelet", "S", "30000") // another process of the same number
	if third, err := read(o, first.process, time.Now()); err != nil || third.facts.Process.PID != 100 {
		t.Errorf("got %+v, %v, want the oldest", third.facts.Process, err)
	}
	f.process("100", "bash", "S", "10000")
	f.process("400", "bash", "S", "20000")
	if fourth, err := read(o, first.process, time.Now()); err != nil || fourth.facts.Process != nil {
		t.Errorf("got %+v, %v, want none", fourth.facts.Process, err)
	}
}
