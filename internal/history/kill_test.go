package history

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// childVariable names the file of the process that TestKill9 kills.
const childVariable = "HISTORY_TEST_CHILD"

// writeForever counts restarts of a container up, and says how far it is.
func writeForever(path string) {
	// Batch is more than there can be before the pipe is full: a slow disk must not have changes joined.
	s := New(Options{File: path, PerPod: 1 << 20, Total: 1 << 20, FileSize: 8 << 10, Delay: time.Millisecond, Batch: 1 << 20})
	go s.Run(context.Background())
	r := report(s, "web")
	if pod, ok := s.Pod("shop", "web"); ok { // of the process before
		for _, record := range pod.Records {
			if record.Kind == KindRestart {
				r.version, _ = strconv.ParseUint(record.To, 10, 64)
			}
		}
	}
	for i := r.version + 1; ; i++ {
		r.set(&v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "web", RestartCount: int32(i)}}})
		if i%16 == 0 {
			time.Sleep(2 * time.Millisecond)
			fmt.Println(i)
		}
	}
}

// TestKill9 kills a process that writes its history, several times over the same file: nothing
// that is older than what is there is missing, and what is there is whole.
func TestKill9_TheHistoryHasNoHoles(t *testing.T) {
	path := newFile(t)
	for round := range 5 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for restarts(t, path) < 100*(round+1)+7*round { // as many as were written, however slow that is
			for range 10 {
				if !lines.Scan() {
					t.Fatalf("the process has ended: %v", child.Wait())
				}
			}
		}
		if err := child.Process.Kill(); err != nil { // SIGKILL
			t.Fatal(err)
		}
		for lines.Scan() { // until its end
		}
		child.Wait()

		if got, least := restarts(t, path), 100*(round+1)+7*round; got < least {
			t.Errorf("round %d: %d records are there, before the kill there were %d", round, got, least)
		}
	}
}

// restarts reads the file and returns the last number, and fails if one is missing.
func restarts(t *testing.T, path string) int {
	s := New(Options{File: path, PerPod: 1 << 20, Total: 1 << 20})
	pod, _ := s.Pod("shop", "web")
	last := 0
	for _, r := range pod.Records {
		if r.Kind != KindRestart {
			continue
		}
		if got, _ := strconv.Atoi(r.To); got != last+1 {
			t.Fatalf("after %d comes %d", last, got)
		}
		last++
	}
	return last
}
