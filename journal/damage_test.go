package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/podstatus"
)

// specimen is a journal of a few pods as a power failure would leave it: the files, and every
// state that was ever acknowledged.
type specimen struct {
	log, backup []byte
	states      [][sha256.Size]byte // after each commit, oldest first
	tables      *tables             // the newest state
}

func (s specimen) newest() [sha256.Size]byte { return s.states[len(s.states)-1] }

// state is the digest of the records of an image.
func state(img image) [sha256.Size]byte {
	e := img.snapshot()
	e.header = header{}
	data, err := e.encode()
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(data)
}

const specimenPods = 8

// makeSpecimen stores the pods, with a copy made half way. Closing it makes a copy again.
func makeSpecimen(t testing.TB, closed bool) specimen {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	d := mustOpen(t, path, Options{CopyEvery: specimenPods})
	var s specimen
	note := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s.states = append(s.states, state(d.onDisk))
	}
	note(nil)
	for n := range specimenPods {
		uid := types.UID(fmt.Sprintf("uid-%02d", n))
		note(d.SetPodAllocation(uid, podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{
			"app": {Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(int64(n), resource.DecimalSI)}}}}))
		if n%4 == 0 {
			note(d.RecordTermination(uid, fmt.Sprintf("containerd://%064d", n), v1.ContainerStateTerminated{ExitCode: int32(n)}))
			note(d.SetFinal(uid, podstatus.Final{Name: fmt.Sprint("pod-", n), Status: v1.PodStatus{Phase: v1.PodFailed}}))
		}
	}
	note(d.RemovePod("uid-03"))
	s.tables = d.next.clone()
	if closed {
		mustClose(t, d)
	}
	s.log, s.backup = mustRead(t, path), mustRead(t, path+copySuffix)
	if !closed {
		mustClose(t, d)
	}
	// Most of the reserve is left out, so that the damage hits what counts.
	s.log = s.log[:len(bytes.TrimRight(s.log, "\x00"))+3*sectorSize]
	return s
}

// judge returns what is wrong with opening such files: a state that was never acknowledged,
// or an older one that is not reported as such.
func (s specimen) judge(log, backup logContents) (decision, string) {
	file := found{exists: true}
	d, err := weigh(log, backup, file, file, currentFormats(), "node-1")
	if err != nil {
		return d, "refused: " + err.Error()
	}
	got := state(d.image) // of what is there, not of what the header says
	switch {
	case got == s.newest():
		return d, ""
	case d.recovery.Outcome == OutcomeEmptied:
		return d, "emptied although one of the files is whole: " + d.recovery.String()
	case !slices.Contains(s.states, got):
		return d, "a state that never was: " + d.recovery.String()
	case !d.recovery.MayHaveLost:
		return d, "an older state without a word: " + d.recovery.String()
	}
	return d, ""
}

// damageEach calls judge with every damage of a file: each byte flipped in turn, and the
// file cut at each length. It uses all processors, and reports what judge finds wrong.
func damageEach(t *testing.T, story string, whole []byte, judge func(damaged []byte) (wrong string)) {
	t.Helper()
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() {
			data := bytes.Clone(whole)
			for i := w; i < len(data); i += workers {
				flip := byte(1) << (i % 8) // one bit: the least that can happen
				if i%3 == 0 {
					flip = 0xff
				}
				data[i] ^= flip
				if wrong := judge(data); wrong != "" {
					t.Errorf("%s, byte %d ^ %#x: %s", story, i, flip, wrong)
				}
				data[i] ^= flip
				if wrong := judge(data[:i:i]); wrong != "" {
					t.Errorf("%s, cut to %d bytes: %s", story, i, wrong)
				}
			}
		})
	}
	group.Wait()
}

// judgeLog: after a clean close the copy holds everything, so that no damage of the log
// loses anything. While the journal was in use, damage of what the copy holds as well loses
// nothing.
func (s specimen) judgeLog(damaged []byte, backup logContents, closed bool) string {
	d, wrong := s.judge(readLog(damaged), backup)
	lost := state(d.image) != s.newest() || d.recovery.MayHaveLost
	switch {
	case wrong != "":
		return wrong
	case lost && closed:
		return "a closed journal lost something: " + d.recovery.String()
	case d.image.header.Sequence < backup.newest():
		return "older than the copy: " + d.recovery.String()
	}
	return ""
}

// judgeBackup: the log is whole, so that damage of the copy means nothing.
func (s specimen) judgeBackup(log logContents, damaged []byte) string {
	d, wrong := s.judge(log, readLog(damaged))
	if wrong == "" && (state(d.image) != s.newest() || d.recovery.MayHaveLost || d.logAside) {
		return "damage of the copy changed more than the copy: " + d.recovery.String()
	}
	return wrong
}

// A journal so small that every bit can be tried, with and without a copy. Without one, the
// commits before the damaged place hold.
func TestEachBitOfEachByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	d := mustOpen(t, path, Options{})
	states := [][sha256.Size]byte{state(d.onDisk)}
	for _, uid := range []types.UID{"a", "b"} {
		if err := deferred(d, uid); err != nil {
			t.Fatal(err)
		}
		states = append(states, state(d.onDisk))
	}
	log, backup := mustRead(t, path), readLog(mustRead(t, path+copySuffix))
	mustClose(t, d)
	s := specimen{log: log[:len(bytes.TrimRight(log, "\x00"))+minReserve], states: states}
	whole := readLog(s.log)
	for i := range s.log {
		data := bytes.Clone(s.log)
		before := readLog(s.log[:i]).entries
		for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255, s.log[i]} { // the last makes it zero
			if flip == 0 {
				continue
			}
			data[i] = s.log[i] ^ flip
			damaged := readLog(data)
			if _, wrong := s.judge(damaged, backup); wrong != "" {
				t.Errorf("byte %d ^ %#x: %s", i, flip, wrong)
			}
			alone := choose(damaged, logContents{})
			if len(before) > 0 && (len(damaged.entries) < len(whole.entries)-1 ||
				alone.image.header.Sequence < before[len(before)-1].header.Sequence) {
				t.Errorf("byte %d ^ %#x: a commit before the damage is lost: %v", i, flip, alone.recovery)
			}
		}
	}
}

// Damage of many places at once.
func TestDamageInManyPlaces_NeverASilentlyWrongState(t *testing.T) {
	s := makeSpecimen(t, false)
	backup := readLog(s.backup)
	rapid.Check(t, func(t *rapid.T) {
		damaged := bytes.Clone(s.log[:len(s.log)-2*sectorSize])
		for range rapid.IntRange(1, 20).Draw(t, "places") {
			at := rapid.IntRange(0, len(damaged)-8).Draw(t, "at")
			binary.BigEndian.PutUint64(damaged[at:], rapid.Uint64Min(1).Draw(t, "number"))
		}
		if wrong := s.judgeLog(damaged, backup, false); wrong != "" {
			t.Error(wrong)
		}
	})
}

// Parts of the file that change places, appear twice or are missing: each is whole.
func TestMisplacedCommits_NeverASilentlyWrongState(t *testing.T) {
	s := makeSpecimen(t, false)
	backup := readLog(s.backup)
	var cuts []int // where entries begin
	for at := 0; readFrame(s.log[at:]) > 0; at += readFrame(s.log[at:]) {
		cuts = append(cuts, at)
	}
	part := func(i int) []byte { return s.log[cuts[i]:cuts[i+1]] }
	for i := range len(cuts) - 2 {
		for story, log := range map[string][]byte{
			"missing": slices.Concat(s.log[:cuts[i]], s.log[cuts[i+1]:]),
			"twice":   slices.Concat(s.log[:cuts[i+1]], part(i), s.log[cuts[i+1]:]),
			"swapped": slices.Concat(s.log[:cuts[i]], part(i+1), part(i), s.log[cuts[i+2]:]),
		} {
			if wrong := s.judgeLog(log, backup, false); wrong != "" {
				t.Errorf("commit %d %s: %s", i, story, wrong)
			}
		}
	}
}

// The decision above is made of bytes. Here a sample of the damaged files, with every
// outcome among them, goes through Open, is written to, and is opened
// again.
func TestDamagedFilesOpenAndTakeWrites(t *testing.T) {
	s := makeSpecimen(t, false)
	outcomes := map[Outcome]int{}
	for _, damaged := range s.sample() {
		path := filepath.Join(t.TempDir(), "journal.db")
		mustWrite(t, path, damaged)
		mustWrite(t, path+copySuffix, s.backup)
		d := mustOpen(t, path, Options{})
		outcomes[d.Recovery().Outcome]++
		if kept := d.Recovery().MovedAside; len(d.Recovery().Damage) > 0 {
			if len(kept) != 1 || !bytes.Equal(mustRead(t, kept[0]), damaged) {
				t.Errorf("the damaged file was not kept as it was: %v", d.Recovery())
			}
		}
		if err := mark(d, "after", "deferred"); err != nil {
			t.Errorf("%v: a write after opening: %v", d.Recovery(), err)
		}
		wanted := len(d.AllAllocations())
		mustClose(t, d)
		d = mustOpen(t, path, Options{})
		if got := d.Recovery(); got.Outcome != OutcomeClean || len(got.Damage) != 0 || len(d.AllAllocations()) != wanted {
			t.Errorf("after the repair the journal opens as %v with %d pods, want clean with %d", got, len(d.AllAllocations()), wanted)
		}
		mustClose(t, d)
	}
	for _, o := range []Outcome{OutcomeUnclean, OutcomeRolledBack, OutcomeRestored} {
		if outcomes[o] == 0 {
			t.Errorf("no damaged file ended as %q: %v", o, outcomes)
		}
	}
	t.Log(outcomes)
}

func (s specimen) sample() (files [][]byte) {
	for at := 0; at < len(s.log); at += 131 {
		damaged := bytes.Clone(s.log)
		damaged[at] ^= 0xff
		files = append(files, damaged, s.log[:at])
	}
	return files
}

func TestBothFilesDamaged_StartsEmptyAndSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	mustWrite(t, path, []byte("not a log"))
	mustWrite(t, path+copySuffix, []byte("not a copy"))
	d := mustOpen(t, path, Options{})
	defer mustClose(t, d)
	got := d.Recovery()
	if got.Outcome != OutcomeEmptied || !got.MayHaveLost || len(got.MovedAside) != 2 || len(got.Damage) != 2 {
		t.Errorf("got %+v, want emptied with both files moved aside", got)
	}
	for _, kept := range got.MovedAside {
		if !bytes.HasPrefix(mustRead(t, kept), []byte("not a ")) {
			t.Errorf("%s is not the damaged file", kept)
		}
	}
}

func TestMissingLog_CopyTakesOver(t *testing.T) {
	s := makeSpecimen(t, true)
	path := filepath.Join(t.TempDir(), "journal.db")
	mustWrite(t, path+copySuffix, s.backup)
	d := mustOpen(t, path, Options{})
	defer mustClose(t, d)
	if got := d.Recovery(); got.Outcome != OutcomeRestored || got.MayHaveLost {
		t.Errorf("got %v, want restored with nothing lost", got)
	}
	if !maps.EqualFunc(d.next.terminations, s.tables.terminations, func(a, b termination) bool { return a.state.ExitCode == b.state.ExitCode }) {
		t.Errorf("got terminations %v, want %v", d.next.terminations, s.tables.terminations)
	}
}

func mustOpen(t testing.TB, path string, options Options) *Durable {
	t.Helper()
	options.NodeName = "node-1"
	d, err := Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustClose(t testing.TB, d *Durable) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustWrite(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
