package journal

import (
	"bytes"
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

// specimen is a journal of 20 pods as a power failure would leave it: the files, and every
// state that was ever acknowledged.
type specimen struct {
	database, backup []byte
	digests          []string // of each commit, oldest first
	tables           *tables  // the newest state
}

func (s specimen) newest() string { return s.digests[len(s.digests)-1] }

const specimenPods = 20

// makeSpecimen stores 20 pods, with a copy made half way. Closing it makes a copy again.
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
		s.digests = append(s.digests, d.onDisk.root.Digest)
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
	s.tables = d.next.clone()
	if closed {
		mustClose(t, d)
	}
	s.database, s.backup = mustRead(t, path), mustRead(t, path+copySuffix)
	if !closed {
		mustClose(t, d)
	}
	return s
}

// judge returns what is wrong with opening such files: a state that was never acknowledged,
// or an older one without a word about it.
func (s specimen) judge(db, spare candidate) (decision, string) {
	d, err := weigh(db, spare, currentFormats(), "node-1")
	if err != nil {
		return d, "refused: " + err.Error()
	}
	got := d.image.sum().String() // of what is there, not of what the root says
	switch {
	case got == s.newest():
		return d, ""
	case d.recovery.Outcome == Emptied:
		return d, "emptied although one of the files is whole: " + d.recovery.String()
	case !slices.Contains(s.digests, got):
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

func TestEachByteFlippedAndEachCut_NeverASilentlyWrongState(t *testing.T) {
	for _, closed := range []bool{false, true} {
		s := makeSpecimen(t, closed)
		t.Logf("closed %t: database %d bytes, copy %d bytes, %d commits", closed, len(s.database), len(s.backup), len(s.digests))
		database, err := checkDatabase(found{data: s.database, exists: true}, currentFormat)
		if err != nil || !database.usable {
			t.Fatalf("the whole database is not usable: %v, %v", err, database.damage)
		}
		backup, err := checkCopy(found{data: s.backup, exists: true}, currentFormat)
		if err != nil || !backup.usable {
			t.Fatalf("the whole copy is not usable: %v, %v", err, backup.damage)
		}
		damageEach(t, fmt.Sprintf("database, closed %t", closed), s.database, func(damaged []byte) string {
			return s.judgeDatabase(damaged, backup, closed)
		})
		damageEach(t, fmt.Sprintf("copy, closed %t", closed), s.backup, func(damaged []byte) string {
			return s.judgeBackup(database, damaged)
		})
	}
}

// judgeDatabase: after a clean close the copy holds everything, so that no damage of the
// database loses anything.
func (s specimen) judgeDatabase(damaged []byte, backup candidate, closed bool) string {
	db, err := checkDatabase(found{data: damaged, exists: true}, currentFormat)
	if err != nil {
		return err.Error()
	}
	d, wrong := s.judge(db, backup)
	if wrong == "" && closed && (d.image.sum().String() != s.newest() || d.recovery.MayHaveLost) {
		return "a closed journal lost something: " + d.recovery.String()
	}
	return wrong
}

// judgeBackup: the database is whole, so that damage of the copy means nothing.
func (s specimen) judgeBackup(database candidate, damaged []byte) string {
	spare, err := checkCopy(found{data: damaged, exists: true}, currentFormat)
	if err != nil {
		return err.Error()
	}
	d, wrong := s.judge(database, spare)
	if wrong == "" && (d.image.sum().String() != s.newest() || d.recovery.MayHaveLost || d.rebuild) {
		return "damage of the copy changed more than the copy: " + d.recovery.String()
	}
	return wrong
}

// Damage of many places at once. The meta pages are left alone, so that the pages below
// them are read and not refused at the door.
func TestDamageInManyPlaces_NeverASilentlyWrongState(t *testing.T) {
	s := makeSpecimen(t, false)
	backup, err := checkCopy(found{data: s.backup, exists: true}, currentFormat)
	if err != nil || !backup.usable {
		t.Fatalf("the whole copy is not usable: %v, %v", err, backup.damage)
	}
	rapid.Check(t, func(t *rapid.T) {
		damaged := bytes.Clone(s.database)
		for range rapid.IntRange(1, 20).Draw(t, "places") {
			page := rapid.IntRange(firstDataPage, len(damaged)/pageSize-1).Draw(t, "page")
			// Headers and elements are at the beginning, and they are what leads astray.
			offset := rapid.OneOf(rapid.IntRange(0, 120), rapid.IntRange(0, pageSize-8)).Draw(t, "offset")
			number := rapid.Uint64().Draw(t, "number")
			native.PutUint64(damaged[page*pageSize+offset:], number)
		}
		if wrong := s.judgeDatabase(damaged, backup, false); wrong != "" {
			t.Error(wrong)
		}
	})
}

// The decision above is made of bytes. Here a sample of the damaged files, with every
// outcome and every page header among them, goes through Open and bbolt, is written to,
// and is opened again.
func TestDamagedFilesOpenAndTakeWrites(t *testing.T) {
	s := makeSpecimen(t, false)
	outcomes := map[Outcome]int{}
	for _, damaged := range s.sample() {
		path := filepath.Join(t.TempDir(), "journal.db")
		mustWrite(t, path, damaged)
		mustWrite(t, path+copySuffix, s.backup)
		d := mustOpen(t, path, Options{})
		outcomes[d.Recovery().Outcome]++
		if kept := d.Recovery().MovedAside; d.Recovery().Outcome == Restored {
			if len(kept) != 1 || !bytes.Equal(mustRead(t, kept[0]), damaged) {
				t.Errorf("the damaged file was not kept as it was: %v", d.Recovery())
			}
		}
		if err := d.SetPodResizeStatus("after", v1.PodResizeStatusDeferred); err != nil {
			t.Errorf("%v: a write after opening: %v", d.Recovery(), err)
		}
		wanted := len(d.GetPodResourceAllocation())
		mustClose(t, d)
		d = mustOpen(t, path, Options{})
		if got := d.Recovery(); got.Outcome != Clean || len(got.Damage) != 0 || len(d.GetPodResourceAllocation()) != wanted {
			t.Errorf("after the repair the journal opens as %v with %d pods, want clean with %d", got, len(d.GetPodResourceAllocation()), wanted)
		}
		mustClose(t, d)
	}
	for _, o := range []Outcome{Unclean, RolledBack, Restored} {
		if outcomes[o] == 0 {
			t.Errorf("no damaged file ended as %q: %v", o, outcomes)
		}
	}
	t.Log(outcomes)
}

func (s specimen) sample() (files [][]byte) {
	flip := func(i int) {
		damaged := bytes.Clone(s.database)
		damaged[i] ^= 0xff
		files = append(files, damaged)
	}
	for page := 0; page < len(s.database); page += pageSize {
		flip(page + 2)               // id
		flip(page + 8)               // flags
		flip(page + pageHeader + 50) // txid of a meta page, an element of others
		flip(page + pageSize - 200)  // data, or nothing
		files = append(files, s.database[:page+100])
	}
	return files
}

func TestBothFilesDamaged_StartsEmptyAndSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	mustWrite(t, path, []byte("not a database"))
	mustWrite(t, path+copySuffix, []byte("not a copy"))
	d := mustOpen(t, path, Options{})
	defer mustClose(t, d)
	got := d.Recovery()
	if got.Outcome != Emptied || !got.MayHaveLost || len(got.MovedAside) != 2 || len(got.Damage) != 2 {
		t.Errorf("got %+v, want emptied with both files moved aside", got)
	}
	for _, kept := range got.MovedAside {
		if !bytes.HasPrefix(mustRead(t, kept), []byte("not a ")) {
			t.Errorf("%s is not the damaged file", kept)
		}
	}
}

func TestMissingDatabase_CopyTakesOver(t *testing.T) {
	s := makeSpecimen(t, true)
	path := filepath.Join(t.TempDir(), "journal.db")
	mustWrite(t, path+copySuffix, s.backup)
	d := mustOpen(t, path, Options{})
	defer mustClose(t, d)
	if got := d.Recovery(); got.Outcome != Restored || got.MayHaveLost {
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
