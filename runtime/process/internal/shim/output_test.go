package shim

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// The time that a shim gives to output is over before it was read, since the log or clients took so
// long. All of it is logged, though a process that could not be killed has the pipe open.
func TestOutputThatIsReadLateIsLogged(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	var want strings.Builder
	for i := range 5000 { // less than a pipe holds
		fmt.Fprintln(&want, "line", i)
	}
	if _, err := io.WriteString(write, want.String()); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, err := logfile.NewWriter(dir, 10<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := &output{sources: []source{{control.Stdout, "stdout", read}}, attachments: newAttachments(record.Spec{})}
	o.copyTo(log)
	o.copies.Wait()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	logged, err := logfile.Open(dir, logfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer logged.Close()
	if got, err := io.ReadAll(logged); err != nil || string(got) != want.String() {
		t.Errorf("got %d bytes, %v; want all %d", len(got), err, want.Len())
	}
}
