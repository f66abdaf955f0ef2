package journal

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

const (
	kills        = 200
	killLanes    = 4 // journals that are killed at the same time
	killWriters  = 4
	podsOfWriter = 5
	opening      = "opening"
	opened       = "opened"
)

// Each writer of a child has a script: write number k is a function of k alone. So the
// state of a writer's pods is a function of how many writes it has made, and a state that
// is none of these is one that is half there.

func scriptPod(writer, k int) types.UID {
	return types.UID(fmt.Sprintf("writer-%d-pod-%d", writer, k%podsOfWriter))
}

func scriptRemoves(k int) bool { return k%7 == 6 }

// scriptAllocation says k twice, in two containers.
func scriptAllocation(k int) podstatus.Allocation {
	r := v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(int64(k), resource.DecimalSI)}}
	return podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{"one": r, "two": r}}
}

func scriptWrite(d *Durable, writer, k int) error {
	if scriptRemoves(k) {
		return d.RemovePod(scriptPod(writer, k))
	}
	return d.SetPodAllocation(scriptPod(writer, k), scriptAllocation(k))
}

// scriptState is what a writer's pods hold after its first n writes.
func scriptState(writer, n int) map[types.UID]int {
	state := map[types.UID]int{}
	for k := max(0, n-podsOfWriter); k < n; k++ { // earlier writes are overwritten
		if scriptRemoves(k) {
			delete(state, scriptPod(writer, k))
		} else {
			state[scriptPod(writer, k)] = k
		}
	}
	return state
}

// writersChild writes until it is killed, and says so after each acknowledged write.
func writersChild(args []string) error {
	fmt.Println(opening)
	// The small reserve lets the log be extended and compacted every few commits.
	d, err := open(args[0], Options{NodeName: "node-1", CopyEvery: 10},
		environment{disk: osDisk{}, formats: currentFormats(), now: time.Now, reserve: 4096})
	if err != nil {
		return err
	}
	if d.Recovery().MayHaveLost {
		return fmt.Errorf("opening after a kill: %v", d.Recovery())
	}
	fmt.Println(opened)
	var group sync.WaitGroup
	for writer := range killWriters {
		start, err := strconv.Atoi(args[1+writer])
		if err != nil {
			return err
		}
		group.Go(func() {
			for k := start; ; k++ {
				if err := scriptWrite(d, writer, k); err != nil {
					fmt.Println("failed:", err)
					return
				}
				fmt.Fprintf(os.Stdout, "%d %d\n", writer, k) // one write, so that lines stay whole
			}
		})
	}
	group.Wait()
	return nil
}

func TestKill9_EveryAcknowledgedWriteIsThereAndNothingIsHalfThere(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for lane := range killLanes {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(lane)))
			path := filepath.Join(t.TempDir(), "journal.db")
			var done [killWriters]int // writes of each writer that the journal holds
			for round := range kills / killLanes {
				acknowledged := killOnce(t, random, path, done)
				d := mustOpen(t, path, Options{})
				if r := d.Recovery(); r.MayHaveLost || len(r.Damage) > 0 {
					t.Errorf("round %d: opening after a kill: %v", round, r)
				}
				for writer := range done {
					done[writer] = checkWriter(t, d, round, writer, acknowledged[writer])
				}
				if round%2 == 0 { // the other rounds meet a journal that was closed
					abandon(t, d)
				} else {
					mustClose(t, d)
				}
			}
			t.Logf("writes that survived: %v", done)
		})
	}
}

// abandon lets go of the journal as a killed process does.
func abandon(t *testing.T, d *Durable) {
	t.Helper()
	if err := d.log.close(); err != nil {
		t.Fatal(err)
	}
	if err := d.lock.release(); err != nil {
		t.Fatal(err)
	}
}

// killOnce starts the writers, kills them at some moment, and returns how many writes of
// each were acknowledged at least.
func killOnce(t *testing.T, random *rand.Rand, path string, done [killWriters]int) [killWriters]int {
	t.Helper()
	args := []string{path}
	for _, n := range done {
		args = append(args, strconv.Itoa(n))
	}
	cmd := child(t, "writers", args...)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	lines.Scan() // opening: from here on the moment of the kill is random
	wait := random.IntN(30)
	for i := 0; i < wait && lines.Scan(); i++ {
		note(t, lines.Text(), &done)
	}
	// Not waiting for anything: the point is to hit any phase of opening or committing.
	time.Sleep(time.Duration(random.IntN(1500)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // acknowledged before the kill, read after it
		note(t, lines.Text(), &done)
	}
	if err := lines.Err(); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	return done
}

func note(t *testing.T, line string, done *[killWriters]int) {
	t.Helper()
	if line == opened {
		return
	}
	if strings.HasPrefix(line, "failed") {
		t.Fatalf("the child %s", line)
	}
	var writer, k int
	if _, err := fmt.Sscanf(line, "%d %d", &writer, &k); err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	done[writer] = k + 1
}

// checkWriter returns how many writes of the writer the journal holds: those acknowledged,
// or one more, which was under way.
func checkWriter(t *testing.T, d *Durable, round, writer, acknowledged int) int {
	t.Helper()
	got := map[types.UID]int{}
	for uid, a := range d.AllAllocations() {
		if !strings.HasPrefix(string(uid), fmt.Sprintf("writer-%d-", writer)) {
			continue
		}
		one, two := cpu(a, "one"), cpu(a, "two")
		if one != two || len(a.Containers) != 2 {
			t.Errorf("round %d: pod %s is half there: one %d, two %d", round, uid, one, two)
		}
		got[uid] = one
	}
	for _, n := range []int{acknowledged, acknowledged + 1} {
		if maps.Equal(got, scriptState(writer, n)) {
			return n
		}
	}
	t.Fatalf("round %d: writer %d had %d writes acknowledged; the journal holds %v, want %v or %v",
		round, writer, acknowledged, got, scriptState(writer, acknowledged), scriptState(writer, acknowledged+1))
	return 0
}

func cpu(a podstatus.Allocation, container string) int {
	q := a.Containers[container].Requests[v1.ResourceCPU]
	return int(q.Value())
}
