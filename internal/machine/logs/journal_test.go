package logs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeJournal is a journalctl that prints entries from a cursor on and then follows the file. The entries
// are as journalctl prints them: with fields that were not asked for, and with bytes that are no UTF-8.
const fakeJournal = `#!/bin/sh
# Prints the lines from that of the cursor on, or from the next one if it is gone, and follows the file.
journal=$(dirname "$0")/journal
from=1
for a in "$@"; do
	case $a in
	--cursor=bad) echo 'Failed to seek to cursor: Invalid argument' >&2; exit 1 ;;
	--cursor=*) from=$(awk -F '"' -v cursor="${a#--cursor=c}" 'substr($4, 2) + 0 >= cursor { found = 1; exit } END { print NR + !found }' "$journal") ;;
	esac
done
echo "$@" >>"$(dirname "$0")/arguments"
exec tail -n +"$from" -f "$journal"
`

func entryText(cursor int, fields string) string {
	return fmt.Sprintf(`{"__CURSOR":"c%d","__REALTIME_TIMESTAMP":"1794776276538697",%s}`+"\n", cursor, fields)
}

func TestTheJournalIsReadOnAfterItsCursor(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "journalctl")
	if err := os.WriteFile(program, []byte(fakeJournal), 0o700); err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(dir, "journal")
	unit := `"_SYSTEMD_UNIT":"kubelet.service","_PID":"77"`
	appendTo(t, journal, entryText(1, `"MESSAGE":"PLEG is not healthy: \"quoted\"",`+unit)+
		entryText(2, `"MESSAGE":"Started kubelet.service - kubelet.","UNIT":"kubelet.service","_PID":"1","_SYSTEMD_UNIT":"init.scope"`)+
		entryText(3, `"MESSAGE":"Started kubelet.service - kubelet.","UNIT":"kubelet.service","_PID":"666","_SYSTEMD_UNIT":"evil.service"`)+ // a process that says it is systemd
		entryText(4, `"MESSAGE":[80,76,69,71,32,105,115,32,110,111,116,32,104,101,97,108,116,104,121,255],`+unit)+
		entryText(5, `"MESSAGE":null,`+unit)+
		entryText(6, `"MESSAGE":"Suppressed 41 messages from kubelet.service","_TRANSPORT":"driver"`)+
		entryText(6, `"MESSAGE":"Suppressed 41 messages from other.service","_TRANSPORT":"driver"`)+
		entryText(6, `"MESSAGE":"Suppressed 41 messages from kubelet.service","_TRANSPORT":"journal","_SYSTEMD_UNIT":"evil.service"`)+
		"garbage\n"+
		entryText(10, `"MESSAGE":"EXT4-fs error","_TRANSPORT":"kernel"`))
	options := Options{
		Units: map[string]Origin{"kubelet.service": KubeletLog, "containerd.service": RuntimeLog}, JournalKernel: true,
		StateFile: filepath.Join(dir, "state"), Share: 1, command: program,
	}
	summary := func(box *mailbox) string {
		counts := map[string]int{}
		for _, p := range box.problems {
			counts[p.Reason] += p.Count
		}
		var list []string
		for reason, n := range counts {
			list = append(list, fmt.Sprintf("%s×%d", reason, n))
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	box := run(t, options, func(m *Monitor, box *mailbox) {
		box.await(counted("Ext4Error", 1))
		if lost := m.Report().Sources[0].Lost; lost != 41 {
			t.Errorf("%d lines are lost, want 41", lost)
		}
	})
	if got, want := summary(box), "Ext4Error×1 KubeletStart×1 LogLinesLost×1 PLEGUnhealthy×2"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	appendTo(t, journal, entryText(11, `"MESSAGE":"panic: again","_SYSTEMD_UNIT":"containerd.service","_PID":"5"`))
	box = run(t, options, func(_ *Monitor, box *mailbox) { box.await(counted("RuntimePanic", 1)) })
	if got, want := summary(box), "RuntimePanic×1"; got != want {
		t.Errorf("after a restart: found %s, want %s", got, want)
	}
	// It was vacuumed: the entry of the cursor is gone.
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	appendTo(t, journal, entryText(12, `"MESSAGE":"panic: the first that is left","_SYSTEMD_UNIT":"containerd.service","_PID":"5"`)+
		entryText(13, `"MESSAGE":"EXT4-fs error","_TRANSPORT":"kernel"`))
	box = run(t, options, func(_ *Monitor, box *mailbox) { box.await(counted("Ext4Error", 1)) })
	if got, want := summary(box), "Ext4Error×1 RuntimePanic×1"; got != want {
		t.Errorf("after a vacuum: found %s, want %s", got, want)
	}
	arguments, err := os.ReadFile(filepath.Join(dir, "arguments"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"--since=-300s", "--lines=all --cursor=c10"} {
		if line := strings.Split(string(arguments), "\n")[i]; !strings.Contains(line, want) || !strings.Contains(line, "_SYSTEMD_UNIT=kubelet.service + _PID=1 UNIT=kubelet.service") {
			t.Errorf("journalctl was called with %s, want %s", line, want)
		}
	}
}

// A journal that cannot be read says why, and a cursor that it refuses is given up.
func TestAJournalThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "journalctl")
	if err := os.WriteFile(program, []byte(fakeJournal), 0o700); err != nil {
		t.Fatal(err)
	}
	appendTo(t, filepath.Join(dir, "journal"), entryText(1, `"MESSAGE":"panic: x","_SYSTEMD_UNIT":"kubelet.service"`))
	options := Options{Units: map[string]Origin{"kubelet.service": KubeletLog}, StateFile: filepath.Join(dir, "state"), Share: 1, command: program}
	appendTo(t, options.StateFile, `{"positions":{"journal":"bad"}}`)
	run(t, options, func(_ *Monitor, box *mailbox) { box.await(counted("KubeletPanic", 1)) })

	options.command, options.StateFile = filepath.Join(dir, "none"), ""
	changed := make(chan struct{}, 1)
	options.Changed = func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	run(t, options, func(m *Monitor, _ *mailbox) {
		for m.Report().Sources[0].Err == "" {
			<-changed
		}
		if err := m.Report().Sources[0].Err; !strings.Contains(err, "no such file") {
			t.Errorf("the error is %q", err)
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(entryText(1, `"MESSAGE":"PLEG is not healthy","_SYSTEMD_UNIT":"kubelet.service"`)))
	f.Add([]byte(entryText(1, `"MESSAGE":[1,2,300],"_SYSTEMD_UNIT":["a","b"]`)))
	j := &journal{units: map[string]Origin{"kubelet.service": KubeletLog}, now: testFile("/x").now, filter: &prefilter{}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var b batch
		j.add(&b, data)
		for _, l := range b.lines {
			if len(l.text) > 3*maxLine || l.origin != KubeletLog && l.origin != ServiceState {
				t.Errorf("a line of %d bytes of %s", len(l.text), l.origin)
			}
		}
	})
}

// What journalctl costs counts: it is kept to the share together with its reader.
func TestTheShareHasTheCostOfJournalctl(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "journalctl")
	busy := "#!/bin/sh\ni=0\nwhile [ $i -lt 300000 ]; do i=$((i+1)); done\n" + fakeJournal[len("#!/bin/sh\n"):]
	if err := os.WriteFile(program, []byte(busy), 0o700); err != nil {
		t.Fatal(err)
	}
	appendTo(t, filepath.Join(dir, "journal"), entryText(1, `"MESSAGE":"panic: x","_SYSTEMD_UNIT":"kubelet.service"`))
	slept := make(chan time.Duration, 1)
	options := Options{Units: map[string]Origin{"kubelet.service": KubeletLog}, Share: 0.01, command: program}
	options.sleep = func(ctx context.Context, d time.Duration) bool {
		select {
		case slept <- d:
		default:
		}
		<-ctx.Done()
		return false
	}
	m, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reading sync.WaitGroup
	reading.Go(func() { m.follow(ctx, m.readers[0]) })
	if d := <-slept; d < time.Second { // 99 times what the loop of the shell costs, at the very least 10 ms
		t.Errorf("it waits %v after the first entry", d)
	}
	cancel()
	reading.Wait()
}
