package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// scriptedDisk stands between the journal and the disk. An append is a commit; what else is
// written passes.
type scriptedDisk struct {
	osDisk
	commits int
	before  func() error // instead of the commit, if it gives an error
	after   func() error // a commit that happened and yet reports an error
}

func (s *scriptedDisk) create(path string) (file, error) {
	f, err := s.osDisk.create(path)
	return &scriptedFile{file: f, script: s}, err
}

type scriptedFile struct {
	file
	script   *scriptedDisk
	appended bool
}

func (f *scriptedFile) WriteAt(p []byte, at int64) (int, error) {
	if f.appended = !isZero(p); f.appended {
		f.script.commits++
		if f.script.before != nil {
			if err := f.script.before(); err != nil {
				return 0, err
			}
		}
	}
	return f.file.WriteAt(p, at)
}

func (f *scriptedFile) Sync() error {
	if err := f.file.Sync(); err != nil || !f.appended || f.script.after == nil {
		return err
	}
	return f.script.after()
}

func script(d *Durable) *scriptedDisk {
	s := &scriptedDisk{}
	d.env.disk, d.log.file = s, &scriptedFile{file: d.log.file, script: s}
	return s
}

var errDisk = errors.New("input/output error")

func deferred(d *Durable, pods ...types.UID) error {
	for _, uid := range pods {
		if err := mark(d, uid, "deferred"); err != nil {
			return err
		}
	}
	return nil
}

func TestWaitingWritersShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustOpen(t, filepath.Join(t.TempDir(), "journal.db"), Options{})
		s := script(d)
		release := make(chan struct{})
		s.before = func() error { <-release; return nil }
		var group sync.WaitGroup
		write := func(n int) {
			group.Go(func() {
				if err := deferred(d, types.UID(fmt.Sprint("pod-", n))); err != nil {
					t.Error(err)
				}
			})
		}
		write(0)
		synctest.Wait() // it leads, is in its commit, and takes no other write along
		for n := range 15 {
			write(n + 1)
		}
		synctest.Wait()
		if got := len(marks(d)); got != 0 {
			t.Errorf("readers see %d writes before any is on the disk", got)
		}
		close(release)
		group.Wait()
		if s.commits != 2 {
			t.Errorf("16 writers made %d commits, want 2: the first one's, and one for all that waited", s.commits)
		}
		if got := len(marks(d)); got != 16 {
			t.Errorf("readers see %d of 16 acknowledged writes", got)
		}
		mustClose(t, d)
	})
}

func TestClose_ServesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal.db")
		d := mustOpen(t, path, Options{})
		s := script(d)
		release := make(chan struct{})
		s.before = func() error { <-release; return nil }
		var group sync.WaitGroup
		for n := range 3 {
			group.Go(func() {
				if err := deferred(d, types.UID(fmt.Sprint("pod-", n))); err != nil {
					t.Errorf("a write that waited when Close was called: %v", err)
				}
			})
		}
		synctest.Wait()
		group.Go(func() { mustClose(t, d) })
		synctest.Wait()
		close(release)
		group.Wait()
		d = mustOpen(t, path, Options{})
		if got := len(marks(d)); got != 3 {
			t.Errorf("the closed journal holds %d of 3 acknowledged writes", got)
		}
		mustClose(t, d)
	})
}

func TestUnchangedWriteCostsNoCommit(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "journal.db"), Options{})
	defer mustClose(t, d)
	if err := deferred(d, "pod"); err != nil {
		t.Fatal(err)
	}
	s := script(d)
	if err := errors.Join(deferred(d, "pod"), d.RemovePod("unknown"), d.DeleteFinal("pod")); err != nil {
		t.Fatal(err)
	}
	if s.commits != 0 {
		t.Errorf("writes that change nothing made %d commits", s.commits)
	}
}

func TestFailedCommit_MemoryIsAsBeforeAndTheNextOneSucceeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	d := mustOpen(t, path, Options{})
	if err := deferred(d, "before"); err != nil {
		t.Fatal(err)
	}
	s := script(d)
	s.before = func() error { return errDisk }
	if err := deferred(d, "failed"); !errors.Is(err, ErrWrite) || !errors.Is(err, errDisk) {
		t.Errorf("got %v, want ErrWrite and the cause", err)
	}
	wantPods(t, "after the failed write", d, "before")
	s.before = nil
	if err := deferred(d, "after"); err != nil {
		t.Fatal(err)
	}
	wantPods(t, "after the next write", d, "before", "after")
	if got := d.Stats(); got.FailedWrites != 1 || got.Writes != 2 || got.Records != 2 {
		t.Errorf("got %+v, want 1 failed and 2 acknowledged writes and 2 records", got)
	}
	mustClose(t, d)
	d = mustOpen(t, path, Options{})
	wantPods(t, "after reopening", d, "before", "after")
	mustClose(t, d)
}

// The sync of a commit fails after it was written: the commit is on the disk, or it is not. Memory says that it is not, and the disk must come to say the same.
func TestFailedCommitThatHappened_IsTakenBackByTheNextOne(t *testing.T) {
	for _, next := range []struct {
		name string
		do   func(d *Durable) error
		want []types.UID
	}{
		{"another pod", func(d *Durable) error { return deferred(d, "other") }, []types.UID{"before", "other"}},
		{"a write that changes nothing", func(d *Durable) error { return d.RemovePod("failed") }, []types.UID{"before"}},
		{"the same once more", func(d *Durable) error { return deferred(d, "failed") }, []types.UID{"before", "failed"}},
		{"only closing", func(*Durable) error { return nil }, []types.UID{"before"}},
	} {
		t.Run(next.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			d := mustOpen(t, path, Options{})
			if err := deferred(d, "before"); err != nil {
				t.Fatal(err)
			}
			s := script(d)
			s.after = func() error { return errDisk }
			if err := deferred(d, "failed"); !errors.Is(err, ErrWrite) {
				t.Errorf("got %v, want ErrWrite", err)
			}
			wantPods(t, "after the failed write", d, "before")
			s.after = nil
			if err := next.do(d); err != nil {
				t.Fatal(err)
			}
			mustClose(t, d)
			if err := os.Remove(path + copySuffix); err != nil { // the log has to know
				t.Fatal(err)
			}
			d = mustOpen(t, path, Options{})
			defer mustClose(t, d)
			wantPods(t, "after reopening", d, next.want...)
			if r := d.Recovery(); r.Outcome != OutcomeClean || len(r.Damage) > 0 {
				t.Errorf("the log opens as %v, want clean", r)
			}
		})
	}
}

// After a failed sync the kernel may have dropped what it could not write, and a second
// sync would report success.
func TestFailedSync_TheFileIsNotUsedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	d := mustOpen(t, path, Options{})
	if err := deferred(d, "before"); err != nil {
		t.Fatal(err)
	}
	suspect := mustStat(t, path)
	held, err := os.Open(path) // or its number could be used for the next file
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	s := script(d)
	s.after = func() error { return syscall.EIO }
	for range 3 {
		if err := deferred(d, "failed"); !errors.Is(err, ErrWrite) || !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v, want ErrWrite and EIO", err)
		}
	}
	s.after = nil
	if err := deferred(d, "later"); err != nil {
		t.Fatal(err)
	}
	if os.SameFile(suspect, mustStat(t, path)) {
		t.Error("a commit went to the file whose sync had failed")
	}
	wantPods(t, "after the failure", d, "before", "later")
	abandon(t, d)
	d = mustOpen(t, path, Options{})
	defer mustClose(t, d)
	wantPods(t, "after the restart", d, "before", "later")
	if r := d.Recovery(); r.Outcome != OutcomeUnclean || len(r.Damage) > 0 {
		t.Errorf("got %v, want unclean", r)
	}
}

func mustStat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestFailedCopy_DoesNotFailTheWrite(t *testing.T) {
	dir := t.TempDir()
	d := mustOpen(t, filepath.Join(dir, "journal.db"), Options{CopyEvery: 1})
	d.env.disk = stubbornDisk{passes: new(int), err: fs.ErrPermission}
	if err := deferred(d, "pod"); err != nil {
		t.Errorf("the write is on the disk and fails with its copy: %v", err)
	}
	if got := d.Stats(); got.FailedCopies != 1 {
		t.Errorf("got %+v, want one failed copy", got)
	}
	d.env.disk = osDisk{}
	if err := deferred(d, "next"); err != nil {
		t.Fatal(err)
	}
	if got := d.Stats(); got.Copies != 2 { // opening, and this
		t.Errorf("got %+v, want the copy made up for", got)
	}
	mustClose(t, d)
	left, err := filepath.Glob(filepath.Join(dir, "*"+temporarySuffix))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func wantPods(t *testing.T, story string, d *Durable, pods ...types.UID) {
	t.Helper()
	got := marks(d)
	for _, uid := range pods {
		if got[uid] == "" {
			t.Errorf("%s: pod %s is missing from %v", story, uid, got)
		}
	}
	if len(got) != len(pods) {
		t.Errorf("%s: got %v, want %v", story, got, pods)
	}
}

// twoSteps is a later statusd: each of its two upgrades renames all pods.
func twoSteps() environment {
	renamed := func(img image) (image, error) {
		next := image{header: img.header, records: map[recordKey][]byte{}}
		for k, record := range img.records {
			value, err := decode(k, record)
			if err != nil {
				return image{}, err
			}
			k.key = "upgraded-" + k.key
			if next.records[k], err = encode(k, value); err != nil {
				return image{}, err
			}
		}
		return next, nil
	}
	return environment{disk: osDisk{}, now: time.Now, formats: formats{current: currentFormat + 2,
		upgrades: map[int]func(image) (image, error){currentFormat: renamed, currentFormat + 1: renamed}}}
}

func TestOldFormat_IsUpgradedInPlace(t *testing.T) {
	path := onePod(t)
	d, err := open(path, Options{NodeName: "node-1"}, twoSteps())
	if err != nil {
		t.Fatal(err)
	}
	wantPods(t, "after two upgrades", d, "upgraded-upgraded-kept")
	if r := d.Recovery(); r.Outcome != OutcomeClean || r.UpgradedFrom != currentFormat || len(r.MovedAside) != 0 {
		t.Errorf("got %+v, want clean and upgraded", r)
	}
	mustClose(t, d)
	if d, err = open(path, Options{NodeName: "node-1"}, twoSteps()); err != nil {
		t.Fatal(err)
	}
	wantPods(t, "after reopening", d, "upgraded-upgraded-kept")
	if r := d.Recovery(); r.UpgradedFrom != 0 {
		t.Errorf("the journal is upgraded again: %+v", r)
	}
	mustClose(t, d)
}

func TestOldFormat_CopyOfADamagedJournalIsUpgraded(t *testing.T) {
	path := onePod(t)
	mustWrite(t, path, []byte("not a database"))
	d, err := open(path, Options{NodeName: "node-1"}, twoSteps())
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, d)
	wantPods(t, "after restoring and two upgrades", d, "upgraded-upgraded-kept")
	if r := d.Recovery(); r.Outcome != OutcomeRestored || r.UpgradedFrom != currentFormat || len(r.MovedAside) != 1 {
		t.Errorf("got %+v, want restored, upgraded, and the damaged file kept", r)
	}
}

func TestOldFormat_FailedUpgradeChangesNothing(t *testing.T) {
	path := onePod(t)
	before := mustRead(t, path)
	for _, steps := range []map[int]func(image) (image, error){
		nil, {currentFormat: func(image) (image, error) { return image{}, errDisk }},
	} {
		env := environment{disk: osDisk{}, now: time.Now, formats: formats{current: currentFormat + 1, upgrades: steps}}
		if _, err := open(path, Options{NodeName: "node-1"}, env); err == nil {
			t.Error("a journal that cannot be upgraded opens")
		}
	}
	if string(mustRead(t, path)) != string(before) {
		t.Error("a failed upgrade changed the file")
	}
	wantIntact(t, path)
}
