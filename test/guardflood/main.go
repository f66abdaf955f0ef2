package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/test/campaign"
)

func main() { campaign.Main("guardflood", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("guardflood", flag.ExitOnError)
	seconds := flags.Int("seconds", 30, "how long each side is flooded")
	rate := flags.Int("rate", 100, "MB/s")
	read := flags.String("read", "", "read this log until the input ends, and print a report")
	share := flags.Float64("share", 0.1, "with -read: the share of one CPU")
	noTexts := flags.Bool("no-texts", false, "with -read: try each expression on each line")
	_ = flags.Parse(args) // ends the program itself
	if *read != "" {
		return readLog(*read, *share, *noTexts)
	}
	return compare(ctx, *rate, time.Duration(*seconds)*time.Second)
}

// readLog is the process that is measured.
func readLog(log string, share float64, noTexts bool) error {
	rules := logs.DefaultRules()
	for i := range rules {
		if noTexts { // an expression for either case has no text that can be searched for
			rules[i].Match = "(?i)" + rules[i].Match
		}
	}
	m, err := logs.New(logs.Options{Rules: rules, Files: map[string]logs.Origin{log: logs.KubeletLog}, StateFile: log + "@state", Share: share})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	report := m.Report() // as it is when the flood ends
	cancel()
	return errors.Join(<-ended, json.NewEncoder(os.Stdout).Encode(report))
}

// side is one way to read.
type side struct {
	name string
	args []string
}

// compare floods each side and prints the table.
func compare(ctx context.Context, rate int, d time.Duration) error {
	fmt.Printf("a log of %d MB/s for %v, rotated each %d MB, %d old files kept\n\n", rate, d, rotateAt>>20, keep)
	fmt.Println("| rules | limit | CPU of one core | CPU per GB | memory | read | left to be read | removed unread | lines that count: written, found |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	var costs []float64
	for _, s := range []side{
		{"texts first (as statusd reads) | 10%", nil},
		{"each expression on each line | 10%", []string{"-no-texts"}},
		{"each expression on each line | 100%", []string{"-no-texts", "-share=1"}},
	} {
		r, err := flood(ctx, s, rate, d)
		if err != nil {
			return err
		}
		fmt.Println(r)
		costs = append(costs, r.perGB())
	}
	fmt.Printf("\nCPU time per GB, expressions on each line : texts first = %.0f : 1\n", costs[2]/costs[0])
	return nil
}

// result is what a side has cost and found.
type result struct {
	side
	elapsed, cpu        time.Duration
	rss                 int64 // KB
	written, read       int64
	behind, lost        int64
	wanted, found, line int64
}

func (r result) perGB() float64 { return r.cpu.Seconds() / (float64(r.read) / 1e9) }

func (r result) String() string {
	mb := func(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }
	return fmt.Sprintf("| %s | %.1f%% | %.2f s | %d MB | %s of %s, %d lines | %s | %s | %d, %d |", r.name, 100*r.cpu.Seconds()/r.elapsed.Seconds(), r.perGB(),
		r.rss>>10, mb(r.read), mb(r.written), r.line, mb(r.behind), mb(r.lost), r.wanted, r.found)
}

// flood writes a log while a process of its own reads it.
func flood(ctx context.Context, s side, rate int, d time.Duration) (r result, err error) {
	dir, err := os.MkdirTemp(memory(), "guardflood-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	w := &writer{path: filepath.Join(dir, "kubelet.log")}
	if err := w.open(); err != nil {
		return r, err
	}
	defer w.close()
	program, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-read=" + w.path}, s.args...)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	err = errors.Join(w.awaitReader(ctx), w.write(ctx, rate, d))
	in.Close()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return r, err
	}
	var report logs.Report
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil {
		return r, err
	}
	source, usage := report.Sources[0], cmd.ProcessState
	r = result{side: s, elapsed: time.Since(begin), cpu: usage.UserTime() + usage.SystemTime(), written: w.written, wanted: w.wanted,
		behind: source.Behind, lost: source.LostBytes, line: source.Lines, found: report.Counts["PLEGUnhealthy"]}
	r.read = r.line * w.written / w.lines
	if u, ok := usage.SysUsage().(*syscall.Rusage); ok {
		r.rss = u.Maxrss
	}
	return r, nil
}

// memory is a directory in memory, if there is one: the measurement must not depend on the disk.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}
