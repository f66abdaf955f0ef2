package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/mutants/mutant"
	"github.com/statusd/statusd/test/progress"
)

// The time limit of a mutant is a multiple of the tests' time without it, plus a constant: a mutant that
// takes longer hangs.
const (
	patience = 3
	some     = 10 * time.Second
	longest  = 5 * time.Minute // without a mutant
)

// lab is where mutants are tried.
type lab struct {
	root    string // of the repository
	dir     string // temporary
	mutants []mutant.Mutant
	line    *progress.Line

	mu       sync.Mutex // guards what follows
	problems []error
	times    map[suite]*baseline
}

// suite is the tests to run for a mutant: some tests of a package.
type suite struct{ in, tags, tests string }

func suiteOf(m mutant.Mutant) suite {
	return suite{cmp.Or(m.In, filepath.Dir(m.File)), m.Tags, m.Tests}
}

// binary is the path of the suite's tests.
func (l *lab) binary(s suite) string {
	return filepath.Join(l.dir, strings.ReplaceAll(s.in, "/", "_")+s.tags+".test")
}

// baseline is a suite without a mutant.
type baseline struct {
	once sync.Once
	took time.Duration
	err  error
}

// tryAll tries the mutants and prints a line for each. tryAll returns how many were not found.
func (l *lab) tryAll(ctx context.Context, parallel int) (survivors int) {
	l.times = map[suite]*baseline{}
	for _, m := range l.mutants {
		l.times[suiteOf(m)] = &baseline{}
	}
	next, done, began := make(chan int), 0, time.Now()
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for number := range next {
				m := l.mutants[number]
				finding, found, err := l.try(ctx, number)
				l.mu.Lock()
				switch {
				case err != nil:
					l.problems = append(l.problems, fmt.Errorf("%s, without %s: %w", m.Guards, m.Without, err))
					finding = "ERROR"
				case !found:
					survivors++
					finding = "SURVIVED " + m.Tests
				}
				done++
				if ctx.Err() == nil {
					fmt.Fprintf(l.line, "%-8s %-62s %s\n", m.Guards, m.Without, finding)
				}
				l.line.Set("%d of %d mutants, %d survived, %s", done, len(l.mutants), survivors, time.Since(began).Round(time.Second))
				l.mu.Unlock()
			}
		})
	}
	for number := range l.mutants {
		if ctx.Err() != nil {
			break
		}
		next <- number
	}
	close(next)
	workers.Wait()
	return survivors
}

// try runs the tests of a mutant. try returns what noticed it.
func (l *lab) try(ctx context.Context, number int) (finding string, found bool, err error) {
	s := suiteOf(l.mutants[number])
	b := l.times[s]
	b.once.Do(func() { b.took, b.err = l.measure(ctx, s) })
	if b.err != nil {
		return "", false, b.err
	}
	output, late, err := l.test(ctx, s, strconv.Itoa(number), patience*b.took+some)
	switch {
	case ctx.Err() != nil:
		return "", false, ctx.Err()
	case late:
		return "hangs", true, nil
	case err == nil:
		return "", false, nil
	}
	for line := range strings.Lines(output) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name, true, nil
		}
	}
	return "crash of the test binary", true, nil
}

// measure runs a suite without a mutant: its tests must exist and pass.
func (l *lab) measure(ctx context.Context, s suite) (time.Duration, error) {
	began := time.Now()
	if _, err := os.Stat(l.binary(s)); err != nil {
		return 0, fmt.Errorf("%s has no tests", s.in)
	}
	output, late, err := l.test(ctx, s, "", longest)
	switch {
	case late:
		return 0, fmt.Errorf("without a mutant, %s of %s took longer than %s", s.tests, s.in, longest)
	case err != nil:
		return 0, fmt.Errorf("without a mutant, %s of %s fails: %w\n%s", s.tests, s.in, err, output)
	case strings.Contains(output, "no tests to run"):
		return 0, fmt.Errorf("%s has no test %s", s.in, s.tests)
	}
	return time.Since(began), nil
}

// mutantEnd is the end of the name of a program that is a mutant.
func mutantEnd(number string) string {
	if number == "" {
		return ""
	}
	return ".mutant" + number
}

// test runs a suite with a mutant. Whatever it has started is ended.
func (l *lab) test(ctx context.Context, s suite, number string, atMost time.Duration) (output string, late bool, err error) {
	timed, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	mark := fmt.Sprintf("STATUSD_MUTANT_RUN=%s-%s-%d", filepath.Base(l.dir), number, time.Now().UnixNano())
	program := l.binary(s) + mutantEnd(number)
	if number != "" {
		if err := os.Link(l.binary(s), program); err != nil {
			return "", false, err
		}
		defer os.Remove(program)
	}
	cmd := exec.CommandContext(timed, program, "-test.run", s.tests, "-test.failfast")
	cmd.Dir = filepath.Join(l.root, s.in)
	cmd.Env = append(os.Environ(), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		endAll(mark)
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	cmd.WaitDelay = time.Second // what was started may have the output open
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error means that nothing is left of the group
	}
	endAll(mark)
	return text.String(), timed.Err() != nil && ctx.Err() == nil, err
}

// endAll kills the processes with the mark in their environment, and their descendants: some have left the process group, and
// some have been given another environment.
func endAll(mark string) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	children, victims := map[int][]int{}, []int{}
	for _, dir := range processes {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if environ, err := os.ReadFile(dir + "/environ"); err == nil && bytes.Contains(environ, []byte(mark)) {
			victims = append(victims, pid)
		}
		stat, err := os.ReadFile(dir + "/stat")
		if _, rest, ok := strings.Cut(string(stat), ") "); err == nil && ok {
			if words := strings.Fields(rest); len(words) > 1 {
				parent, _ := strconv.Atoi(words[1])
				children[parent] = append(children[parent], pid)
			}
		}
	}
	for i := 0; i < len(victims); i++ {
		victims = append(victims, children[victims[i]]...)
	}
	for _, pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
