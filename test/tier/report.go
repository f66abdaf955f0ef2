package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// slowest is how many of the slowest tests are named at the end.
const slowest = 10

// event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// report reads the events of go test -json. It prints the closing line of each package, the output of each test that
// failed, at once, and at the end what took long and how many tests there were.
type report struct {
	out      io.Writer // what go test would print
	progress func(line string)
	packages int // to run
	began    time.Time

	mu                      sync.Mutex      // guards what follows
	running                 map[string]bool // packages
	done                    int             // packages
	passed, failed, skipped int             // tests; those of subtests count as one with their parent
	failures                []string
	times                   []timed
	output                  map[string][]string // of tests and packages that still run, by name
	broken                  bool                // a package failed
}

type timed struct {
	name    string
	elapsed float64
}

func newReport(out io.Writer, progress func(string), packages int) *report {
	return &report{out: out, progress: progress, packages: packages, began: time.Now(), output: map[string][]string{}, running: map[string]bool{}}
}

// read reads events until the end of the input. Lines that are no events are printed as they are.
func (r *report) read(input io.Reader) error {
	lines := bufio.NewReader(input)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprint(r.out, string(line))
			} else {
				r.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := e.Package + " " + e.Test
	switch e.Action {
	case "start":
		r.running[short(e.Package)] = true
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e, key)
		} else {
			r.endTest(e, key)
		}
	}
}

// fail reports that a package failed.
func (r *report) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}

func (r *report) endTest(e event, key string) {
	if top, _, sub := strings.Cut(e.Test, "/"); sub {
		// The lines of a subtest belong to the test that the reader knows by name.
		parent := e.Package + " " + top
		r.output[parent] = append(r.output[parent], r.output[key]...)
		delete(r.output, key)
		return
	}
	r.times = append(r.times, timed{name: short(e.Package) + " " + e.Test, elapsed: e.Elapsed})
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		r.print(r.output[key])
	case "fail":
		r.failed++
		r.failures = append(r.failures, short(e.Package)+" "+e.Test)
		r.print(r.output[key])
	}
	delete(r.output, key)
}

func (r *report) endPackage(e event, key string) {
	r.done++
	delete(r.running, short(e.Package))
	if e.Action == "fail" {
		r.broken = true
		for running := range r.output { // what a crash or a timeout cut short
			if strings.HasPrefix(running, e.Package+" ") && running != key {
				r.failed++
				r.failures = append(r.failures, short(e.Package)+strings.TrimPrefix(running, e.Package)+" (did not end)")
				r.print(r.output[running])
				delete(r.output, running)
			}
		}
	}
	lines := r.output[key]
	if e.Action == "pass" { // the closing line alone: "ok", the package and its time
		lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "ok ") })
	}
	r.print(lines)
	if e.FailedBuild != "" {
		r.failures = append(r.failures, short(e.Package)+" (does not build)")
	}
	delete(r.output, key)
}

func (r *report) print(lines []string) {
	for _, line := range lines {
		fmt.Fprint(r.out, line)
	}
}

// tick shows how far the tests are and what runs.
func (r *report) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := "compiling"
	if len(r.running) > 0 {
		now = "running " + strings.Join(slices.Sorted(maps.Keys(r.running)), ", ")
	}
	r.progress(fmt.Sprintf("%d of %d packages, %d tests, %d failed, %s; %s", r.done, r.packages, r.passed+r.failed+r.skipped, r.failed,
		time.Since(r.began).Round(time.Second), now))
}

// close prints the slowest tests, the failed ones again, and the numbers. close reports whether all is well.
func (r *report) close() bool {
	slices.SortStableFunc(r.times, func(a, b timed) int { return cmp.Compare(b.elapsed, a.elapsed) })
	fmt.Fprintln(r.out, "\nthe slowest tests:")
	for _, t := range r.times[:min(slowest, len(r.times))] {
		fmt.Fprintf(r.out, "%8.2fs %s\n", t.elapsed, t.name)
	}
	if len(r.failures) > 0 {
		fmt.Fprintln(r.out, "\nfailed:")
		for _, name := range r.failures {
			fmt.Fprintln(r.out, "  "+name)
		}
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped; %d of %d packages in %s, with %s of CPU\n", r.passed, r.failed, r.skipped, r.done, r.packages,
		time.Since(r.began).Round(time.Second), used().Round(time.Second))
	return !r.broken && r.failed == 0
}

// used is the CPU time of all processes that have run, which says on a busy machine how long the tests take on an idle one.
func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func short(importPath string) string {
	return strings.TrimPrefix(importPath, "github.com/statusd/statusd/")
}
