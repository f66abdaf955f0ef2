package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// bigFile makes a database with branch pages and, of removed pods, free ones.
func bigFile(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	d := mustOpen(t, path, Options{})
	all := map[types.UID]podstatus.Allocation{}
	for n := range 500 {
		all[types.UID(fmt.Sprintf("uid-%03d", n))] = podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{"app": {}}}
	}
	if err := d.SetPodResourceAllocation(all); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 500; n += 50 {
		if err := d.RemovePod(types.UID(fmt.Sprintf("uid-%03d", n))); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, d)
	return path
}

// bbolt's own check must agree that what readBolt accepts is sound, and what our reader
// finds must be what bbolt finds.
func TestReaderAgreesWithBolt(t *testing.T) {
	path := bigFile(t)
	ours, err := readBolt(mustRead(t, path))
	if err != nil {
		t.Fatal(err)
	}
	theirs := boltRecords(t, path)
	if !maps.EqualFunc(ours.records, theirs, bytes.Equal) {
		t.Errorf("our reader finds %d records and bbolt %d, or they differ", len(ours.records), len(theirs))
	}
}

// Damage that leaves every record readable, and would lead bbolt astray at the next write.
func TestReader_RefusesTreesThatWouldMisleadBolt(t *testing.T) {
	whole := mustRead(t, bigFile(t))
	branch := branchOf(t, whole)
	child := func(i int) int { return branch*pageSize + pageHeader + i*elementSize + 8 }
	separator := func(i int) int {
		at := branch*pageSize + pageHeader + i*elementSize
		return at + int(native.Uint32(whole[at:]))
	}
	for _, c := range []struct {
		name   string
		damage func(data []byte)
		want   string
	}{
		{"a page that is its own child", func(data []byte) { native.PutUint64(data[child(1):], uint64(branch)) }, "used twice"},
		{"two parents of a page", func(data []byte) { copy(data[child(1):child(1)+8], data[child(0):]) }, ""},
		{"a child outside the file", func(data []byte) { native.PutUint64(data[child(0):], 1<<40) }, "outside"},
		{"a child that is a meta page", func(data []byte) { native.PutUint64(data[child(0):], 1) }, "outside"},
		{"a separator above the keys of its child", func(data []byte) { data[separator(1)+6]++ }, "out of order"},
		{"a separator below the keys before it", func(data []byte) { data[separator(1)+4] = '0' - 1 }, "out of order"},
		{"more elements than fit", func(data []byte) { native.PutUint16(data[branch*pageSize+10:], 0xffff) }, "do not fit"},
		{"a branch without children", func(data []byte) { native.PutUint16(data[branch*pageSize+10:], 0) }, "without children"},
		{"an overflow past the end", func(data []byte) { native.PutUint32(data[branch*pageSize+12:], 0xffffffff) }, "header"},
	} {
		data := bytes.Clone(whole)
		c.damage(data)
		_, err := readBolt(data)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: got %v, want damage with %q", c.name, err, c.want)
		}
	}
}

// branchOf finds the branch page of the newest commit: the root of the only large bucket.
func branchOf(t *testing.T, data []byte) int {
	t.Helper()
	meta, _, err := newestMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	r := boltReader{data: data, seen: make([]bool, meta.pages), records: map[recordKey][]byte{}}
	err = r.tree(meta.rootPage, bounds{}, 0, func(e element) error {
		if string(e.key) == string(allocations) {
			found = int(native.Uint64(e.value))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if native.Uint16(data[found*pageSize+8:]) != branchPage || native.Uint16(data[found*pageSize+10:]) < 2 {
		t.Fatalf("page %d is no branch with two children", found)
	}
	return found
}

// kill -9 cannot show it and a simulated disk does not reach into bbolt: its syncs are on.
func TestCommitsAreSynced(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "journal.db"), Options{})
	defer mustClose(t, d)
	if db := d.store.(boltStore).db; db.NoSync || db.NoGrowSync {
		t.Errorf("bbolt runs with NoSync %t, NoGrowSync %t", db.NoSync, db.NoGrowSync)
	}
}
