package logs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/wholefile"
)

// A disk that hangs holds neither reports nor the reading of lines nor what was found in them. There is one write
// at a time, and the last is of the newest state.
func TestADiskThatHangsHoldsNothing(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "kubelet.log")
	appendTo(t, log, "")
	hangs, works := make(chan struct{}, 100), make(chan struct{})
	writing := make(chan struct{}, 1)
	options := Options{Files: map[string]Origin{log: KubeletLog}, StateFile: filepath.Join(dir, "state"), Share: 1, patience: time.Millisecond}
	options.write = func(file string, data []byte) error {
		select {
		case writing <- struct{}{}:
			defer func() { <-writing }()
		default:
			t.Error("two writes at once")
		}
		hangs <- struct{}{}
		<-works
		return wholefile.Replace(file, data)
	}
	var saver *saver
	run(t, options, func(m *Monitor, box *mailbox) {
		begun(m)
		<-hangs
		for i := range 3 {
			appendTo(t, log, "PLEG is not healthy\n")
			box.await(counted("PLEGUnhealthy", i+1))
			if got := m.Report().Counts["PLEGUnhealthy"]; got != int64(i+1) {
				t.Errorf("the report has %d lines, want %d", got, i+1)
			}
		}
		close(works)
		saver = m.saver
	})
	<-saver.ended
	var s state
	data, err := os.ReadFile(options.StateFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &s); err != nil || s.Counts["PLEGUnhealthy"] != 3 || len(s.Outbox) != 0 {
		t.Errorf("the file has %s (%v)", data, err)
	}
}

// A disk that hangs when the monitor ends does not keep it from ending.
func TestADiskThatHangsAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "kubelet.log")
	appendTo(t, log, "")
	works := make(chan struct{})
	options := Options{Files: map[string]Origin{log: KubeletLog}, StateFile: filepath.Join(dir, "state"), patience: time.Millisecond}
	options.write = func(string, []byte) error {
		<-works
		return nil
	}
	var saver *saver
	run(t, options, func(m *Monitor, _ *mailbox) {
		begun(m)
		saver = m.saver
	})
	close(works)
	<-saver.ended
}
