//go:build systemd

package logs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These tests run as root under a systemd that they may do anything with: make guard-systemd.

// loggingUnit is a unit that logs texts.
type loggingUnit struct {
	t    *testing.T
	name string
}

func newLoggingUnit(t *testing.T, name, settings string) *loggingUnit {
	u := &loggingUnit{t: t, name: name + ".service"}
	write(t, "/run/systemd/system/"+u.name, "[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=oneshot\nExecStart=/bin/cat "+u.text()+"\n"+settings)
	command(t, "systemctl", "daemon-reload")
	return u
}

func (u *loggingUnit) text() string { return "/run/" + u.name + ".text" }

// log starts the unit, which logs the lines and ends.
func (u *loggingUnit) log(lines ...string) {
	u.t.Helper()
	write(u.t, u.text(), strings.Join(lines, "\n")+"\n")
	command(u.t, "systemctl", "start", u.name)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

func marks(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("mark-%d", i))
	}
	return list
}

func (u *loggingUnit) options() Options {
	return Options{Units: map[string]Origin{u.name: KubeletLog}, StateFile: filepath.Join(u.t.TempDir(), "state"), Share: 1, Rules: []Rule{
		{Origin: KubeletLog, Reason: "Marked", Severity: Info, Match: `mark-\d+`},
		{Origin: KubeletLog, Reason: "Binary", Severity: Info, Match: `binary-mark`},
		{Origin: KubeletLog, Reason: "Long", Severity: Info, Match: `long-mark`},
		{Origin: KubeletLog, Reason: "Last", Severity: Info, Match: `last-line`},
		{Origin: ServiceState, Reason: "Finished", Severity: Info, Match: `Finished `},
	}}
}

// A cursor of the real journal: across restarts of the monitor, of the unit, and across rotations, each line counts once.
func TestRealJournal_RestartsAndRotationsLoseAndRepeatNothing(t *testing.T) {
	u := newLoggingUnit(t, "marks", "")
	options := u.options()
	sum := map[string]int{}
	read := func(want int, during func()) {
		box := run(t, options, func(_ *Monitor, box *mailbox) {
			during()
			box.await(counted("Marked", want))
			box.await(counted("Finished", 1))
		})
		for _, p := range box.problems {
			sum[p.Reason] += p.Count
		}
	}
	u.log(marks(0, 10)...) // before the first start, and not long ago
	read(10, func() {})
	u.log(marks(10, 20)...)
	command(t, "journalctl", "--rotate")
	u.log(marks(20, 30)...)
	read(20, func() {})
	read(20, func() { // rotated while it is followed
		u.log(marks(30, 40)...)
		command(t, "journalctl", "--rotate")
		u.log(marks(40, 50)...)
	})
	u.log("last-line")
	box := run(t, options, func(m *Monitor, box *mailbox) {
		box.await(counted("Last", 1))
		if got := m.Report().Counts; got["Marked"] != 50 {
			t.Errorf("the counts are %v", got)
		}
	})
	for _, p := range box.problems {
		sum[p.Reason] += p.Count
	}
	t.Logf("50 lines, 3 restarts of the monitor, 6 of the unit, 2 rotations: found %v", sum)
	if sum["Marked"] != 50 {
		t.Errorf("found %v, want 50 lines", sum)
	}
}

// The journal is vacuumed, so that the entry of the cursor is gone: what is left is read, and nothing again.
func TestRealJournal_Vacuum(t *testing.T) {
	u := newLoggingUnit(t, "vacuumed", "")
	options := u.options()
	u.log(marks(0, 5)...)
	run(t, options, func(_ *Monitor, box *mailbox) { box.await(counted("Marked", 5)) })
	u.log(marks(5, 10)...)
	vacuum(t, u)
	u.log(marks(10, 15)...)
	u.log("last-line")
	box := run(t, options, func(m *Monitor, box *mailbox) { box.await(counted("Last", 1)) })
	n := 0
	for _, p := range box.problems {
		if p.Reason == "Marked" {
			n += p.Count
		}
	}
	t.Logf("5 lines read, 5 vacuumed, 5 written since: found %d", n)
	if n != 5 {
		t.Errorf("found %+v", box.problems)
	}
	run(t, options, func(_ *Monitor, box *mailbox) { // while it is followed
		vacuum(t, u)
		u.log(marks(15, 20)...)
		box.await(counted("Marked", 5))
	})
}

// vacuum removes all entries of the unit.
func vacuum(t *testing.T, u *loggingUnit) {
	t.Helper()
	for {
		command(t, "journalctl", "--rotate", "--vacuum-time=1s")
		out, err := exec.CommandContext(t.Context(), "journalctl", "--quiet", "--output=cat", "_SYSTEMD_UNIT="+u.name).Output()
		if len(out) == 0 {
			t.Logf("the journal of %s is empty (%v)", u.name, err)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Lines of bytes that are no text, and lines that journald cuts in pieces.
func TestRealJournal_BinaryAndLongLines(t *testing.T) {
	u := newLoggingUnit(t, "binary", "")
	u.log("binary-mark \xff\xfe\x01", "binary-mark \x1b[31mred", strings.Repeat("\xff", 40<<10)+"mark-0",
		"long-mark "+strings.Repeat("x", 40<<10), "long-mark "+strings.Repeat("y", 200<<10), "last-line")
	box := run(t, u.options(), func(m *Monitor, box *mailbox) {
		box.await(counted("Last", 1))
		t.Logf("read %+v", m.Report().Sources)
		if lost := m.Report().Sources[0].Lost; lost != 0 {
			t.Errorf("%d are lost", lost)
		}
	})
	found := map[string]int{}
	for _, p := range box.problems {
		found[p.Reason] += p.Count
	}
	t.Logf("found %v", found)
	if found["Binary"] != 2 || found["Long"] != 2 {
		t.Errorf("found %v, want 2 lines of each kind", found)
	}
}

// A unit that logs more than journald takes: what it has suppressed counts as lost.
func TestRealJournal_RateLimit(t *testing.T) {
	u := newLoggingUnit(t, "flooding", "LogRateLimitIntervalSec=1s\nLogRateLimitBurst=10\n")
	run(t, u.options(), func(m *Monitor, box *mailbox) {
		written := int64(0)
		for m.Report().Sources[0].Lost == 0 { // on a busy machine journald may read the lines after the unit, and with it the limit, is gone
			u.log(marks(0, 10000)...)
			written += 10000
			for range 10 { // journald says so with the first line after the interval
				time.Sleep(200 * time.Millisecond)
				u.log("again")
			}
		}
		box.await(counted("LogLinesLost", 1))
		r := m.Report()
		t.Logf("%d of %d lines were found, %d were suppressed", r.Counts["Marked"], written, r.Sources[0].Lost)
		if sum := r.Counts["Marked"] + r.Sources[0].Lost; sum < written {
			t.Errorf("%d lines were found and %d are lost, want %d together", r.Counts["Marked"], r.Sources[0].Lost, written)
		}
	})
}
