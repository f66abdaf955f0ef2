//go:build real

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/test/binaries"
)

// build makes the programs that make run runs.
func build(t *testing.T) (demo, statusd string) {
	t.Helper()
	dir := binaries.Own(t, binaries.Demo, binaries.Statusd, binaries.Shim, binaries.ExampleServer)
	return filepath.Join(dir, binaries.Demo), filepath.Join(dir, binaries.Statusd)
}

// awaitLine reads the output of the demo until it shows a pod that runs.
func awaitLine(t *testing.T, output io.Reader) {
	t.Helper()
	lines := bufio.NewScanner(output)
	var seen strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&seen, lines.Text())
		if strings.Contains(lines.Text(), "web-local") && strings.Contains(lines.Text(), "Running") {
			return
		}
	}
	t.Fatalf("the output ended before a pod ran: %v\n%s", lines.Err(), seen.String())
}

// However the demo ends, nothing of what it has started runs on: a hangup, a reader of its output
// that goes away, a terminal that is closed.
func TestNothingIsLeftWhenNobodyListens(t *testing.T) {
	demo, statusd := build(t)
	for _, c := range []struct {
		name string
		// start runs the demo and returns its output, and what ends it.
		start func(*testing.T, *exec.Cmd) (output io.Reader, end func() error)
	}{
		{"SIGHUP", func(t *testing.T, cmd *exec.Cmd) (io.Reader, func() error) {
			output := piped(t, cmd)
			return output, func() error {
				go io.Copy(io.Discard, output)
				return cmd.Process.Signal(syscall.SIGHUP)
			}
		}},
		{"SIGPIPE", func(t *testing.T, cmd *exec.Cmd) (io.Reader, func() error) {
			output := piped(t, cmd)
			return output, output.Close
		}},
		{"closed terminal", func(t *testing.T, cmd *exec.Cmd) (io.Reader, func() error) {
			terminal := onTerminal(t, cmd)
			return terminal, terminal.Close
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			cmd := exec.Command(demo, "--standalone", "--state", state, "--statusd", statusd)
			cmd.Dir = "../.." // where make run runs it
			output, end := c.start(t, cmd)
			awaitLine(t, output)
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the demo ended with %v", err)
			}
			if left := processesOf(t, state); len(left) > 0 {
				t.Errorf("still running: %q", left)
			}
			if left := processesOf(t, filepath.Dir(statusd)); len(left) > 0 {
				t.Errorf("still running: %q", left)
			}
		})
	}
}

// piped starts the command with its output in a pipe.
func piped(t *testing.T, cmd *exec.Cmd) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	t.Cleanup(func() { reader.Close() })
	return reader
}

// onTerminal starts the command as the leader of a session on a terminal of its own, and returns
// the other end of the terminal.
func onTerminal(t *testing.T, cmd *exec.Cmd) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	t.Cleanup(func() { master.Close() })
	return master
}
