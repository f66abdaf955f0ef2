package logs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// logVariable makes this test binary a monitor of a log, which ends when its input does.
const logVariable = "STATUSD_TEST_MONITOR_LOG"

// runAsMonitor is the program that TestKillsInAFlood kills. It prints the number of each problem that it gives away.
func runAsMonitor(log string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	o := Options{Files: map[string]Origin{log: KubeletLog}, StateFile: log + "@state", Share: 1, interval: time.Millisecond, pause: time.Millisecond}
	o.Problem = func(p Problem) { fmt.Println(p.Reason, p.Count) }
	m, err := New(o)
	if err != nil {
		panic(err)
	}
	m.Run(ctx)
}

// A log is flooded and rotated in both ways while its reader is killed again and again: each line counts once.
func TestKillsInAFlood(t *testing.T) {
	log := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, log, "")
	state := log + "@state"
	appendTo(t, state, fmt.Sprintf(`{"boot":%q,"positions":{%q:%q}}`, bootID(), log, positionOf(t, log, 0)))
	filler := bytes.Repeat([]byte(`I1115 10:00:00.000001 1 kubelet.go:2500] "SyncLoop (probe)" pod="default/web-7d4b9c5d8-abcde"`+"\n"), 4096)
	total, rotated := 0, 0
	flood := func() { // half a megabyte, and a line that counts in each 4 KB of it
		var text bytes.Buffer
		for part := range slices.Chunk(filler, len(filler)/128) {
			fmt.Fprintf(&text, "PLEG is not healthy: %d\n", total)
			text.Write(part)
			total++
		}
		appendTo(t, log, text.String())
	}
	rotate := func(kill int) {
		rotated++
		generation := fmt.Sprintf("%s.%03d", log, 999-rotated)
		if kill%2 == 0 {
			rename(t, log, generation)
		} else {
			copyAndTruncate(t, log, generation)
		}
	}
	for kill := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), logVariable+"="+log)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		flood()
		rotate(kill)
		flood()
		out.Read(make([]byte, 1)) // it has found something; it is killed wherever it is then
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		in.Close()
		cmd.Wait()
		flood()
	}
	appendTo(t, log, "panic: the last line\n")
	options := Options{Files: map[string]Origin{log: KubeletLog}, StateFile: state, Share: 1}
	run(t, options, func(m *Monitor, box *mailbox) {
		box.await(counted("KubeletPanic", 1))
		if got := m.Report().Counts["PLEGUnhealthy"]; got != int64(total) {
			t.Errorf("%d lines were counted, want %d", got, total)
		}
	})
}
