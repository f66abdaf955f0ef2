//go:build !race

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// sessions are what a journal goes through, with a reserve that lets it extend the log and
// compact it.
var sessions = map[string]struct {
	writes, bytes int
	reserve       int64
}{
	"small commits": {10, 10, 1500}, "large commits": {9, 1500, 3000},
}

// live opens the journal, writes, and closes it. It returns for each pod the values that
// may be found: of a write that failed the old and the new one, for a crash that follows at
// once may find it; the next write that succeeds takes it back.
func live(path string, d *simDisk, writes, size int, reserve int64) (want map[types.UID][]string, opened, closed bool) {
	want = map[types.UID][]string{}
	j, err := open(path, Options{NodeName: "node-1", CopyEvery: 3}, environment{disk: d, formats: currentFormats(), now: time.Now, reserve: reserve})
	if err != nil {
		return want, false, false
	}
	for n := range writes {
		uid := types.UID(fmt.Sprint("pod-", n%4))
		value := fmt.Sprint(n, strings.Repeat("x", size))
		err := j.SetFinal(uid, podstatus.Final{Name: value, Status: v1.PodStatus{Phase: v1.PodFailed}})
		before := ""
		if len(want[uid]) > 0 {
			before = want[uid][0]
		}
		if err == nil {
			for pod, values := range want {
				want[pod] = values[:1]
			}
			want[uid] = []string{value}
		} else {
			want[uid] = append([]string{before}, value)
		}
	}
	closed = j.Close() == nil
	if closed {
		for pod, values := range want {
			want[pod] = values[:1]
		}
	}
	abandonLock(j)
	return want, true, closed
}

// abandonLock lets the next opening in, also if Close failed.
func abandonLock(j *Durable) { _ = j.lock.release() }

// histories are what is on the disk before.
func histories(t *testing.T, path string) map[string]map[string][]byte {
	t.Helper()
	closed := onePod(t)
	log, backup := mustRead(t, closed), mustRead(t, closed+copySuffix)
	d := mustOpen(t, closed, Options{CopyEvery: 2})
	for _, uid := range []types.UID{"one", "two", "tail"} {
		if err := deferred(d, uid); err != nil {
			t.Fatal(err)
		}
	}
	inUse, inUseBackup := mustRead(t, closed), mustRead(t, closed+copySuffix)
	mustClose(t, d)
	inUse[30] ^= 1 // its snapshot, which the copy has too
	return map[string]map[string][]byte{
		"a new journal":         {},
		"a closed journal":      {path: log, path + copySuffix: backup},
		"a damaged log":         {path: bytes.Repeat([]byte{7}, len(log)), path + copySuffix: backup},
		"a damaged copy":        {path: log, path + copySuffix: []byte("not a copy")},
		"a log without a start": {path: inUse, path + copySuffix: inUseBackup},
	}
}

func TestPowerLoss_AtEachStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	random := rand.New(rand.NewPCG(1, 2))
	for before, files := range histories(t, path) {
		for name, session := range sessions {
			t.Run(before+", "+name, func(t *testing.T) {
				cases := 0
				for steps, ended := 0, false; !ended; steps++ {
					d := newSimDisk(files)
					d.steps, d.fails = steps, errPowerLost
					want, _, closed := live(path, d, session.writes, session.bytes, session.reserve)
					ended = closed
					for lucky := range len(d.pending) + 1 {
						for i, keep := range d.keeps(random) {
							story := fmt.Sprintf("power lost after %d steps, %d names and sectors %d reached the disk: %s",
								steps, lucky, i, strings.Join(d.trace, ", "))
							check(t, story, path, d.survivors(lucky, keep), files, want)
							cases++
						}
					}
				}
				t.Log(cases, "crashes")
			})
		}
	}
}

// check opens what a crash left.
func check(t *testing.T, story, path string, d *simDisk, before map[string][]byte, want map[types.UID][]string) {
	t.Helper()
	j, err := open(path, Options{NodeName: "node-1"}, environment{disk: d, formats: currentFormats(), now: time.Now})
	if err != nil {
		t.Fatalf("%s: %v", story, err)
	}
	defer mustClose(t, j)
	got := j.Finals()
	for uid, values := range want {
		found := false
		for _, value := range values {
			found = found || got[uid].Name == value
		}
		if !found {
			t.Errorf("%s: %s is %.10q, want one of %.10q; %v", story, uid, got[uid].Name, values, j.Recovery())
		}
	}
	for _, uid := range []types.UID{"kept", "tail"} {
		if had := uid == "kept" && len(before) > 0 || uid == "tail" && hasTail(before, path); had && marks(j)[uid] == "" {
			t.Errorf("%s: what was there before is gone: %s; %v", story, uid, j.Recovery())
		}
	}
	if r := j.Recovery(); r.MayHaveLost {
		t.Errorf("%s: nothing is lost and opening says %v", story, r)
	}
}

func hasTail(before map[string][]byte, path string) bool {
	return bytes.Contains(before[path], []byte("tail"))
}

// One call fails, whichever it is, and the journal goes on. What was acknowledged is there
// after a power loss, although a failed sync has dropped what it should have written.
func TestOneFailedCall_LosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	random := rand.New(rand.NewPCG(3, 4))
	for before, files := range histories(t, path) {
		for name, session := range sessions {
			for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
				t.Run(fmt.Sprintf("%s, %s, %v", before, name, cause), func(t *testing.T) {
					for steps := 0; ; steps++ {
						d := newSimDisk(files)
						d.steps, d.fails, d.once = steps, cause, true
						want, opened, _ := live(path, d, session.writes, session.bytes, session.reserve)
						if d.steps >= 0 {
							return // the session needs fewer calls
						}
						if !opened && errors.Is(cause, syscall.ENOSPC) {
							t.Errorf("a full disk keeps the journal closed: %s", d.trace)
						}
						for _, keep := range d.keeps(random) {
							story := fmt.Sprintf("call %d failed: %s", steps, strings.Join(d.trace, ", "))
							check(t, story, path, d.survivors(0, keep), files, want)
							if len(d.pending) > 0 {
								check(t, story, path, d.survivors(len(d.pending), keep), files, want)
							}
						}
					}
				})
			}
		}
	}
}

// A commit is one write and one sync. Whatever part of its sectors is on the disk when the
// power fails: the state is that before or after it, and nothing is reported as lost.
func TestPowerLoss_WithinACommit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "journal.db")
	j := mustOpen(t, path, Options{})
	defer mustClose(t, j)
	for n := range 60 {
		uid := types.UID(fmt.Sprint("pod-", n%20))
		before, was, at := mustRead(t, path), state(j.onDisk), j.log.end
		final := podstatus.Final{Name: strings.Repeat("x", random.IntN(3000)), Version: uint64(n)}
		write := func() error { return j.SetFinal(uid, final) }
		if n%5 == 4 {
			write = func() error { return j.RemovePod(uid) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		after, is := mustRead(t, path), state(j.onDisk)
		used := int(j.log.end) + 3*sectorSize // most of the reserve is left out
		before, after = before[:min(used, len(before))], after[:min(used, len(after))]
		first, last := int(at)/sectorSize, (int(j.log.end)-1)/sectorSize
		for mask := range 1 << min(last-first+1, 5) {
			torn := bytes.Clone(before)
			for sector := first; sector <= last; sector++ {
				if mask>>((sector-first)%5)&1 == 1 {
					copy(torn[sector*sectorSize:], after[sector*sectorSize:(sector+1)*sectorSize])
				}
			}
			d := choose(readLog(torn), logContents{})
			if got := state(d.image); (got != was && got != is) || d.recovery.MayHaveLost || len(d.recovery.Damage) > 0 {
				t.Fatalf("commit %d, sectors %b of %d: %v", n, mask, last-first+1, d.recovery)
			}
			if bytes.Equal(torn, after) && state(d.image) != is {
				t.Fatalf("commit %d is whole and is not there: %v", n, d.recovery)
			}
		}
	}
}
