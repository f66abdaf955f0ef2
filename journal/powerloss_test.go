package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

var errPowerLost = errors.New("the power is gone")

// forgetfulDisk is a real directory that remembers what of it would survive a power loss:
// of a file what it held when it was last synced, of the directory the names it had when it
// was last synced. After a number of steps the power fails and nothing works any more.
type forgetfulDisk struct {
	osDisk
	dir   string
	steps int // left until the power fails; negative: never

	content map[string][]byte // by name now: what a sync has made last
	names   map[string][]byte // by name then: what the directory would show after the loss
	pending []func()          // changes of names since the directory was synced
	// database is the name that bbolt writes to by itself. Each of its commits is synced
	// when it returns, so that its content lasts as it is.
	database string
	trace    []string
}

func newForgetfulDisk(dir string, steps int) *forgetfulDisk {
	return &forgetfulDisk{dir: dir, steps: steps, content: map[string][]byte{}, names: map[string][]byte{},
		database: filepath.Join(dir, "journal.db")}
}

func (d *forgetfulDisk) step(what, path string) error {
	if d.steps == 0 {
		return errPowerLost
	}
	d.steps--
	d.trace = append(d.trace, what+" "+filepath.Base(path))
	return nil
}

func (d *forgetfulDisk) create(path string) (file, error) {
	if err := d.step("create", path); err != nil {
		return nil, err
	}
	f, err := d.osDisk.create(path)
	d.content[path] = nil
	d.pending = append(d.pending, func() { d.names[path] = d.content[path] })
	return &forgetfulFile{f, d, path}, err
}

func (d *forgetfulDisk) open(path string) (file, error) {
	f, err := d.osDisk.open(path)
	if _, known := d.content[path]; !known { // bbolt made it
		d.content[path] = nil
	}
	return &forgetfulFile{f, d, path}, err
}

func (d *forgetfulDisk) rename(from, to string) error {
	if err := d.step("rename", to); err != nil {
		return err
	}
	content := d.content[from]
	delete(d.content, from)
	d.content[to] = content
	d.pending = append(d.pending, func() {
		delete(d.names, from)
		d.names[to] = content
	})
	return d.osDisk.rename(from, to)
}

func (d *forgetfulDisk) remove(path string) error {
	if err := d.step("remove", path); err != nil {
		return err
	}
	delete(d.content, path)
	d.pending = append(d.pending, func() { delete(d.names, path) })
	return d.osDisk.remove(path)
}

func (d *forgetfulDisk) syncDir(dir string) error {
	if err := d.step("sync directory", dir); err != nil {
		return err
	}
	for _, change := range d.pending {
		change()
	}
	d.pending = nil
	return nil
}

type forgetfulFile struct {
	file
	disk *forgetfulDisk
	path string
}

func (f *forgetfulFile) Write(p []byte) (int, error) {
	if err := f.disk.step("write", f.path); err != nil {
		return 0, err
	}
	return f.file.Write(p)
}

func (f *forgetfulFile) Sync() error {
	if err := f.disk.step("sync", f.path); err != nil {
		return err
	}
	content, err := os.ReadFile(f.path)
	f.disk.content[f.path] = content
	return err
}

// survivors puts into an empty directory what the power loss left. Changes of names that
// were not synced may or may not have reached the disk, in the order they were made:
// lucky of them did.
func (d *forgetfulDisk) survivors(t *testing.T, lucky int) string {
	t.Helper()
	for _, change := range d.pending[:lucky] {
		change()
	}
	dir := t.TempDir()
	for path, content := range d.names {
		if path == d.database && content != nil {
			if now, err := os.ReadFile(path); err == nil {
				content = now
			}
		}
		mustWrite(t, filepath.Join(dir, filepath.Base(path)), content)
	}
	return filepath.Join(dir, "journal.db")
}

// begin copies a journal into the disk's directory, as if it had always been there.
func (d *forgetfulDisk) begin(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(d.dir, name)
		mustWrite(t, path, content)
		d.content[path], d.names[path] = content, content
	}
}

// session opens the journal, writes, and closes it, until the power fails. It returns the
// writes that were acknowledged and whether Open and Close were.
func session(d *forgetfulDisk) (acknowledged []types.UID, opened, closed bool) {
	env := environment{disk: d, formats: currentFormats(), now: time.Now}
	j, err := open(d.database, Options{NodeName: "node-1", CopyEvery: 3}, env)
	if err != nil {
		return nil, false, false
	}
	for n := range 7 {
		uid := types.UID(fmt.Sprint("pod-", n))
		if err := j.SetPodResizeStatus(uid, v1.PodResizeStatusDeferred); err == nil {
			acknowledged = append(acknowledged, uid)
		}
	}
	return acknowledged, true, j.Close() == nil
}

func TestPowerLoss_AtEachStep(t *testing.T) {
	whole := map[string][]byte{}
	path := onePod(t)
	for _, name := range []string{"journal.db", "journal.db.good"} {
		whole[name] = mustRead(t, filepath.Join(filepath.Dir(path), name))
	}
	damaged := maps.Clone(whole)
	damaged["journal.db"] = bytes.Repeat([]byte{7}, len(whole["journal.db"]))
	for _, story := range []struct {
		name  string
		files map[string][]byte
	}{{"a new journal", nil}, {"a journal from before", whole}, {"a damaged journal", damaged}} {
		t.Run(story.name, func(t *testing.T) {
			for steps := 0; ; steps++ {
				ended := powerLossAfter(t, steps, story.files)
				if ended {
					return
				}
			}
		})
	}
}

// powerLossAfter says whether the session came to its end before the power failed.
func powerLossAfter(t *testing.T, steps int, before map[string][]byte) (ended bool) {
	t.Helper()
	for lucky := 0; ; lucky++ {
		d := newForgetfulDisk(t.TempDir(), steps)
		d.begin(t, before)
		acknowledged, opened, closed := session(d)
		if lucky > len(d.pending) {
			return closed
		}
		story := fmt.Sprintf("power lost after %d steps, %d names reached the disk: %s", steps, lucky, strings.Join(d.trace, ", "))
		j := mustOpen(t, d.survivors(t, lucky), Options{})
		got := j.GetResizeStatus()
		for _, uid := range acknowledged {
			if got[uid] == "" {
				t.Errorf("%s: the acknowledged write of %s is gone; %v", story, uid, j.Recovery())
			}
		}
		if before != nil && got["kept"] == "" {
			t.Errorf("%s: what was there before is gone; %v", story, j.Recovery())
		}
		if r := j.Recovery(); r.MayHaveLost {
			t.Errorf("%s: opened %t, closed %t: nothing is lost and opening says %v", story, opened, closed, r)
		}
		mustClose(t, j)
	}
}

// A commit of bbolt writes pages, syncs, writes one meta page, syncs. Whatever part of the
// pages is on the disk when the power fails before the meta page is: the commit before
// holds, to the byte.
func TestPowerLoss_WithinACommit(t *testing.T) {
	const sector = 512
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "journal.db")
	j := mustOpen(t, path, Options{})
	defer mustClose(t, j)
	before, digest := mustRead(t, path), j.onDisk.root.Digest
	for n := range 60 {
		uid := types.UID(fmt.Sprint("pod-", n%20))
		write := func() error { return j.SetPodResizeStatus(uid, ResizeStatus(fmt.Sprint("status-", n))) }
		if n%5 == 4 {
			write = func() error { return j.RemovePod(uid) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		after := mustRead(t, path)
		for range 8 {
			torn := append(bytes.Clone(before), after[len(before):]...)
			for at := firstDataPage * pageSize; at < len(before); at += sector {
				if random.IntN(2) == 0 {
					copy(torn[at:at+sector], after[at:at+sector])
				}
			}
			wantCommit(t, fmt.Sprintf("commit %d torn before its meta page", n), torn, digest)
		}
		digest = j.onDisk.root.Digest
		wantCommit(t, fmt.Sprintf("commit %d whole", n), after, digest)
		before = after
	}
}

func wantCommit(t *testing.T, story string, data []byte, digest string) {
	t.Helper()
	c, err := checkDatabase(found{data: data, exists: true}, currentFormat)
	if err != nil || c.damage != nil || c.metaDamage != nil {
		t.Fatalf("%s: %v, %v, %v", story, err, c.damage, c.metaDamage)
	}
	if c.image.root.Digest != digest {
		t.Fatalf("%s: it opens as commit %d, which is not the last one that was acknowledged", story, c.image.root.Sequence)
	}
}
