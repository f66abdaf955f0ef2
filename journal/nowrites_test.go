package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// stubbornDisk lets some calls pass that change something, and gives an error for each
// after them until it is healed.
type stubbornDisk struct {
	osDisk
	passes *int // -1 is healed
	err    error
}

func (s stubbornDisk) pass(path string) error {
	switch {
	case *s.passes < 0:
		return nil
	case *s.passes == 0:
		return &os.PathError{Op: "write", Path: path, Err: s.err}
	}
	*s.passes--
	return nil
}

func (s stubbornDisk) create(path string) (file, error) {
	if err := s.pass(path); err != nil {
		return nil, err
	}
	return s.osDisk.create(path)
}

func (s stubbornDisk) link(path, name string) error {
	if err := s.pass(path); err != nil {
		return err
	}
	return s.osDisk.link(path, name)
}

func (s stubbornDisk) rename(from, to string) error {
	if err := s.pass(from); err != nil {
		return err
	}
	return s.osDisk.rename(from, to)
}

// readable checks that a journal can be read and takes no writes, for the right reason.
func readable(d *Durable, path string, sentinel error) error {
	if got, _ := marked(d, "kept"); got != "deferred" {
		return fmt.Errorf("earlier data cannot be read: got %q, %v", got, d.Recovery())
	}
	if err := wantRefusal(d.Writable(), sentinel, path); err != nil {
		return err
	}
	err := mark(d, "refused", "deferred")
	if err := errors.Join(wantRefusal(err, ErrWrite, path), wantRefusal(err, sentinel, path)); err != nil {
		return err
	}
	if got, ok := marked(d, "refused"); ok {
		return fmt.Errorf("a write that was refused is there: %q", got)
	}
	return nil
}

// writable checks that a journal takes writes, and that all of it is there when it is
// opened again.
func writable(d *Durable, path string) error {
	if err := mark(d, "later", "infeasible"); err != nil {
		return fmt.Errorf("a write after the disk takes writes: %w", err)
	}
	if err := errors.Join(d.Writable(), d.Close()); err != nil {
		return err
	}
	again, err := Open(path, Options{NodeName: "node-1"})
	if err != nil {
		return err
	}
	defer again.Close()
	kept, _ := marked(again, "kept")
	later, _ := marked(again, "later")
	if _, there := marked(again, "refused"); there || kept != "deferred" || later != "infeasible" {
		return fmt.Errorf("after reopening: kept %q, later %q, refused %v; %v", kept, later, there, again.Recovery())
	}
	if r := again.Recovery(); r.Outcome != OutcomeClean || r.MayHaveLost || len(r.Damage) > 0 {
		return fmt.Errorf("after reopening: %v, want it clean", r)
	}
	return nil
}

// Whatever is on the disk, and wherever it stops to take writes: what it holds can be read,
// and the journal goes on as soon as it takes writes again.
func TestOpen_ADiskThatTakesNoWrites(t *testing.T) {
	flip := func(t *testing.T, path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			data[i] ^= 0xff
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for story, damage := range map[string]func(t *testing.T, path string){
		"nothing is damaged":  func(*testing.T, string) {},
		"the log is damaged":  func(t *testing.T, path string) { flip(t, path) },
		"the copy is damaged": func(t *testing.T, path string) { flip(t, path+copySuffix) },
		"the log is missing": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for cause, sentinel := range map[error]error{syscall.ENOSPC: ErrNoSpace, syscall.EROFS: ErrReadOnly} {
			for passes := 0; ; passes++ {
				path := onePod(t)
				damage(t, path)
				left := passes
				d, err := open(path, Options{NodeName: "node-1"}, environment{disk: stubbornDisk{passes: &left, err: cause}, formats: currentFormats(), now: time.Now})
				if err != nil {
					t.Fatalf("%s, %v after %d calls: %v", story, cause, passes, err)
				}
				if d.Writable() == nil {
					left = -1
					mustClose(t, d)
					if passes == 0 {
						t.Errorf("%s: opening needed no writes", story)
					}
					break // as many calls as opening needs
				}
				if err := readable(d, path, sentinel); err != nil {
					t.Errorf("%s, %v after %d calls: %v", story, cause, passes, err)
				}
				left = -1
				if err := writable(d, path); err != nil {
					t.Errorf("%s, %v after %d calls, then healed: %v", story, cause, passes, err)
				}
			}
		}
	}
}

// An opening that failed leaves no lock behind, and nothing that it had written counts.
func TestOpen_CanBeRepeatedAfterAnyFailure(t *testing.T) {
	for passes := 0; ; passes++ {
		path := onePod(t)
		left := passes
		d, err := open(path, Options{NodeName: "node-1"}, environment{disk: stubbornDisk{passes: &left, err: syscall.EACCES}, formats: currentFormats(), now: time.Now})
		if err == nil {
			left = -1
			mustClose(t, d)
			return
		}
		wantIntact(t, path)
	}
}

// Closing without having written leaves what was found.
func TestOpen_AJournalThatTookNoWritesIsClosedAsItWas(t *testing.T) {
	path := onePod(t)
	left := 0
	d, err := open(path, Options{NodeName: "node-1"}, environment{disk: stubbornDisk{passes: &left, err: syscall.EROFS}, formats: currentFormats(), now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, d)
	wantIntact(t, path)
}

func TestOpen_ANewJournalOnAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	left := 0
	d, err := open(path, Options{NodeName: "node-1"}, environment{disk: stubbornDisk{passes: &left, err: syscall.ENOSPC}, formats: currentFormats(), now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := mark(d, "kept", "deferred"); !errors.Is(err, ErrNoSpace) {
		t.Errorf("got %v, want ErrNoSpace", err)
	}
	left = -1
	if err := mark(d, "kept", "deferred"); err != nil {
		t.Error(err)
	}
	mustClose(t, d)
	wantIntact(t, path)
}
