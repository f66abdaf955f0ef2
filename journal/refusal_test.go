package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// runChild runs a role to its end. A role returns an error for whatever is not as wanted.
func runChild(t *testing.T, role string, args ...string) {
	t.Helper()
	cmd := child(t, role, args...)
	if output, err := cmd.Output(); err != nil {
		t.Errorf("%s: %v: %s", role, err, output)
	}
}

// wantRefusal checks that the error is the documented one, on one line, with the path and
// with something to do.
func wantRefusal(err, sentinel error, path string) error {
	switch {
	case !errors.Is(err, sentinel):
		return fmt.Errorf("got %v, want %q", err, sentinel)
	case strings.Contains(err.Error(), "\n"):
		return fmt.Errorf("the error has more than one line: %q", err)
	case !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "; "):
		return fmt.Errorf("the error does not say where or what to do: %q", err)
	}
	return nil
}

func refused(t *testing.T, path string, sentinel error) {
	t.Helper()
	d, err := Open(path, Options{NodeName: "node-1", LockTimeout: time.Nanosecond})
	if err == nil {
		mustClose(t, d)
	}
	if err := wantRefusal(err, sentinel, path); err != nil {
		t.Error(err)
	}
}

// onePod makes a journal with one pod, closed.
func onePod(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	d := mustOpen(t, path, Options{})
	if err := mark(d, "kept", "deferred"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, d)
	return path
}

func wantIntact(t *testing.T, path string) {
	t.Helper()
	d := mustOpen(t, path, Options{})
	defer mustClose(t, d)
	if got, _ := marked(d, "kept"); got != "deferred" {
		t.Errorf("earlier data is gone: got %q, %v", got, d.Recovery())
	}
	if r := d.Recovery(); r.MayHaveLost || len(r.Damage) > 0 {
		t.Errorf("earlier data is intact and opening says %v", r)
	}
}

func TestOpen_NewerFormat(t *testing.T) {
	path := onePod(t)
	older := mustRead(t, path)
	env := environment{disk: osDisk{}, now: time.Now, formats: formats{current: currentFormat + 1,
		upgrades: map[int]func(image) (image, error){currentFormat: func(img image) (image, error) { return img, nil }}}}
	d, err := open(path, Options{NodeName: "node-1"}, env)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, d)
	before := mustRead(t, path)
	refused(t, path, ErrNewerFormat)
	if string(before) != string(mustRead(t, path)) {
		t.Error("a refused journal was changed")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	refused(t, path, ErrNewerFormat) // its copy is as new
	mustWrite(t, path, older)
	refused(t, path, ErrNewerFormat) // opening would overwrite the copy
}

func TestOpen_OtherNode(t *testing.T) {
	path := onePod(t)
	d, err := Open(path, Options{NodeName: "node-2"})
	if err == nil {
		mustClose(t, d)
	}
	if err := wantRefusal(err, ErrOtherNode, path); err != nil {
		t.Error(err)
	}
	if err != nil && (!strings.Contains(err.Error(), "node-1") || !strings.Contains(err.Error(), "node-2")) {
		t.Errorf("the error does not name both nodes: %v", err)
	}
	wantIntact(t, path)
}

func TestOpen_NoNodeName(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "journal.db"), Options{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

func TestOpen_MissingDirectory(t *testing.T) {
	refused(t, filepath.Join(t.TempDir(), "missing", "journal.db"), os.ErrNotExist)
}

// A journal of the format before is neither read nor replaced.
func TestOpen_OldFormat(t *testing.T) {
	bolt := make([]byte, 4*4096)
	binary.LittleEndian.PutUint32(bolt[16:], 0xED0CDAED)
	firstPageLost := make([]byte, 4*4096)
	binary.BigEndian.PutUint32(firstPageLost[4096+16:], 0xED0CDAED)
	for story, file := range map[string]struct {
		suffix string
		data   []byte
	}{
		"bbolt": {"", bolt}, "bbolt of another byte order, first page lost": {"", firstPageLost},
		"its copy": {copySuffix, []byte("SDJCOPY1 and so on")},
	} {
		path := filepath.Join(t.TempDir(), "journal.db")
		mustWrite(t, path+file.suffix, file.data)
		refused(t, path, ErrOldFormat)
		if !bytes.Equal(mustRead(t, path+file.suffix), file.data) {
			t.Errorf("%s: a refused journal was changed", story)
		}
	}
}

// holderChild has the journal open until its input ends.
func holderChild(args []string) error {
	d, err := Open(args[0], Options{NodeName: "node-1"})
	if err != nil {
		return err
	}
	fmt.Println(opened)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return d.Close()
}

func TestOpen_InUseByASecondProcess(t *testing.T) {
	path := onePod(t)
	cmd := child(t, "holder", path)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || strings.TrimSpace(line) != opened {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	refused(t, path, ErrInUse)
	_, err = Open(path, Options{NodeName: "node-1", LockTimeout: time.Nanosecond})
	if want := fmt.Sprintf("pid %d", cmd.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want the holder named: %s", err, want)
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the holder: %v", err)
	}
	wantIntact(t, path)
}

func TestOpen_InUseAlsoIfTheLockFileWasDeleted(t *testing.T) {
	path := onePod(t)
	d := mustOpen(t, path, Options{})
	if err := os.Remove(path + lockSuffix); err != nil {
		t.Fatal(err)
	}
	refused(t, path, ErrInUse)
	if err := deferred(d, "later"); err != nil {
		t.Error(err)
	}
	mustClose(t, d)
	wantIntact(t, path)
}

// A process that is killed lets go of the lock file first and of the log a little later.
func TestOpen_WaitsForTheLogOfAProcessThatIsOnItsWayOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := onePod(t)
		log, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := tryLock(log); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second/2, func() { log.Close() })
		wantIntact(t, path)
	})
}

func TestOpen_UnreadableSectorMakesTheCopyTakeOver(t *testing.T) {
	path := onePod(t)
	env := environment{disk: brokenDisk{onRead: syscall.EIO, readOf: path}, formats: currentFormats(), now: time.Now}
	d, err := open(path, Options{NodeName: "node-1"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if r := d.Recovery(); r.Outcome != OutcomeRestored || r.MayHaveLost {
		t.Errorf("got %v, want restored with nothing lost", r)
	}
	mustClose(t, d)
	wantIntact(t, path)
}

// brokenDisk gives errors.
type brokenDisk struct {
	osDisk
	onRead error
	readOf string
}

func (b brokenDisk) readFile(path string) ([]byte, error) {
	if path == b.readOf {
		return nil, &os.PathError{Op: "read", Path: path, Err: b.onRead}
	}
	return b.osDisk.readFile(path)
}
