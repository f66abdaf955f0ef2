//go:build real

package logs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The kernel of this machine: what a process writes to its log is no line of the kernel.
func TestTheLogOfThisKernel(t *testing.T) {
	kernelLog, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		t.Logf("the kernel's log cannot be written here: %v; its records are tested as texts", err)
		return
	}
	defer kernelLog.Close()
	if setting, _ := os.ReadFile("/proc/sys/kernel/printk_devkmsg"); strings.TrimSpace(string(setting)) == "off" {
		t.Log("the kernel does not take what processes write to its log; its records are tested as texts")
		return
	}
	mark := fmt.Sprintf("statusd-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	rules := []Rule{{Origin: Kernel, Reason: "Marked", Severity: Info, Match: mark}}
	state := filepath.Join(t.TempDir(), "state")
	write := func(text string) {
		if _, err := kernelLog.WriteString("<4>" + mark + " " + text + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	options := Options{Rules: rules, Kmsg: "/dev/kmsg", StateFile: state, Share: 1, user: true}
	write("one")
	run(t, options, func(_ *Monitor, box *mailbox) { box.await(counted("Marked", 1)) })
	write("two")
	write("three")
	box := run(t, options, func(_ *Monitor, box *mailbox) { box.await(counted("Marked", 2)) })
	if sum := box.problems[len(box.problems)-1]; !strings.HasSuffix(sum.Text, "three") || !counted("Marked", 2)(box.problems) || counted("Marked", 3)(box.problems) {
		t.Errorf("after a restart there is %+v", box.problems)
	}
	options.user, options.StateFile = false, ""
	box = run(t, options, func(m *Monitor, _ *mailbox) {
		begun(m)
		write("four")
		for !readPast(m, t) {
			time.Sleep(time.Millisecond)
		}
	})
	if len(box.problems) != 0 {
		t.Errorf("a process has faked a line of the kernel: %+v", box.problems)
	}
}

// readPast reports whether the monitor has read all records that the kernel has.
func readPast(m *Monitor, t *testing.T) bool {
	m.mu.Lock()
	_, seq, _ := cutPosition(m.state.Positions["kernel"])
	m.mu.Unlock()
	out, err := exec.Command("dd", "if=/dev/kmsg", "iflag=nonblock", "bs=16k", "status=none").Output()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	records := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	for i := len(records) - 1; i >= 0; i-- {
		if r, err := parseKmsg(records[i]); err == nil {
			return seq >= r.seq
		}
	}
	return true
}
