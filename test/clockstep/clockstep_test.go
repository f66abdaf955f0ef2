package clockstep

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(clockVariable) != "" {
		tellTime()
		return
	}
	os.Exit(m.Run())
}

const (
	clockVariable = "CLOCKSTEP_TEST"
	day           = 24 * time.Hour
)

// A running process gets another wall clock, and its monotonic clock goes on.
func TestSet(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), clockVariable+"=1")
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
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewReader(out)
	ask := func() (wall, running time.Duration) {
		var seconds, elapsed int64
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscanln(lines, &seconds, &elapsed); err != nil {
			t.Fatal(err)
		}
		return time.Since(time.Unix(seconds, 0)).Round(time.Hour), time.Duration(elapsed)
	}
	ask()
	for _, offset := range []time.Duration{day, -day, 0} {
		err := Set(cmd.Process.Pid, offset)
		if goruntime.GOARCH != "amd64" {
			if err == nil {
				t.Error("the clock was stepped on another architecture than amd64")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if wall, running := ask(); wall != -offset || running < 0 || running > time.Hour {
			t.Errorf("behind by %s, running for %s; want %s and a moment", wall, running, -offset)
		}
	}
}

// tellTime answers each line with the time, and for how long it has run.
func tellTime() {
	begin := time.Now()
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		now := time.Now()
		fmt.Println(now.Unix(), int64(now.Sub(begin)))
	}
}
