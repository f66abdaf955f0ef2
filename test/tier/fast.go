package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/gobuild"
	"github.com/statusd/statusd/test/progress"
)

// errFailed is the end of a run whose report has said what failed.
var errFailed = errors.New("tests failed")

// light are flags of go test that save work without losing a check: a hundred test binaries are linked for one run each, so that
// none needs the data of a debugger, and make lint vets the packages with their tests.
var light = []string{"-ldflags=-w", "-vet=off"}

// runFast runs the tests that need only Go.
func runFast(ctx context.Context, o options, patterns []string) error {
	packages, err := list(ctx, "", patterns)
	if err != nil {
		return err
	}
	byLength(packages)
	var racing, plain []string
	var alone, unraced []string // packages and tests that run without the race detector, in parallel with the others
	detect := o.race == "on" || o.race == "auto" && hasCompiler()
	if !detect && o.race == "auto" {
		fmt.Println("without the race detector, which needs a C compiler (gcc)")
	}
	for i := range packages {
		concurrent, err := packages[i].isConcurrent()
		if err != nil {
			return err
		}
		if detect && (concurrent || o.race == "on") {
			racing = append(racing, packages[i].ImportPath)
			names, err := packages[i].testsTagged("!race")
			if err != nil {
				return err
			}
			if names, err = o.selected(names); err != nil {
				return err
			}
			if len(names) > 0 {
				alone, unraced = append(alone, packages[i].ImportPath), append(unraced, names...)
			}
		} else {
			plain = append(plain, packages[i].ImportPath)
		}
	}
	parallel := o.parallel
	if parallel == 0 {
		parallel = 2 * runtime.GOMAXPROCS(0) // some tests wait
	}
	// What runs without the race detector takes less time: it runs beside the rest, with a quarter of the packages.
	beside := parallel
	if len(racing) > 0 && parallel > 1 {
		beside = (parallel + 3) / 4
		parallel -= beside
	}
	line := progress.On(os.Stdout)
	r := newReport(line, func(text string) { line.Set("%s", text) }, len(packages)+len(alone))
	fmt.Printf("%d packages, %d of them under the race detector\n", len(packages), len(racing))
	flags := func(o options, parallel int) []string {
		return slices.Concat([]string{"-timeout", o.timeout.String(), "-p", strconv.Itoa(parallel)}, light, o.selection())
	}
	long := o
	long.run = exactly(unraced)
	raced := make(chan error, 1)
	go func() { raced <- goTest(ctx, r, append([]string{"-race"}, flags(o, parallel)...), racing, nil) }()
	problem := errors.Join(goTest(ctx, r, flags(long, beside), alone, nil), goTest(ctx, r, flags(o, beside), plain, nil), <-raced)
	return finish(ctx, r, line, problem)
}

// byLength sorts packages by the number of their test files, the longest first: a long package that begins last would be waited for alone.
func byLength(packages []pkg) {
	slices.SortStableFunc(packages, func(a, b pkg) int { return cmp.Compare(len(b.tests()), len(a.tests())) })
}

// selected are the tests of a list that are to run.
func (o options) selected(tests []string) ([]string, error) {
	pattern, _, _ := strings.Cut(o.run, "/") // what follows selects subtests
	run, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	return slices.DeleteFunc(tests, func(name string) bool { return !run.MatchString(name) }), nil
}

// exactly matches the tests of a list and no others, as go test's -run.
func exactly(tests []string) string {
	tests = slices.Clone(tests)
	slices.Sort(tests)
	return "^(" + strings.Join(slices.Compact(tests), "|") + ")$"
}

func hasCompiler() bool {
	output, err := exec.Command("go", "env", "CC").Output()
	if err != nil || len(output) == 0 {
		return false
	}
	_, err = exec.LookPath(string(output[:len(output)-1]))
	return err == nil
}

func (o options) selection() (args []string) {
	if o.run != "" {
		args = append(args, "-run", o.run)
	}
	if o.count > 0 {
		args = append(args, "-count", strconv.Itoa(o.count))
	}
	return args
}

// buildFlags are those of the flags of go test that a build has too.
func buildFlags(args []string) (flags []string) {
	for _, arg := range args {
		if arg == "-race" || strings.HasPrefix(arg, "-tags=") {
			flags = append(flags, arg)
		}
	}
	return flags
}

// goTest runs go test -json over the packages and reports its events. Failed tests are no error: the report has them.
func goTest(ctx context.Context, r *report, args, packages, env []string) error {
	if len(packages) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := gobuild.Dependencies(ctx, r.out, "what the tests need", buildFlags(args), packages); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-json"}, args...), packages...)...)
	cmd.Env = append(os.Environ(), env...)
	// An interrupt from the terminal is passed on to the whole group, tests and what they started included.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	reading, writing := io.Pipe()
	cmd.Stdout, cmd.Stderr = writing, writing
	read := make(chan error, 1)
	go func() { read <- r.read(reading) }()
	stop := everySecond(r.tick)
	err := cmd.Run()
	stop()
	writing.Close()
	readErr := <-read
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.fail() // also if nothing could be built, and there was no event
		err = nil
	}
	return errors.Join(err, readErr)
}

// everySecond calls a function until the returned one is called.
func everySecond(call func()) (stop func()) {
	ticker, done, ended := time.NewTicker(time.Second), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				call()
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}

func finish(ctx context.Context, r *report, line *progress.Line, problem error) error {
	line.Close()
	well := r.close()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case problem != nil:
		return problem
	case !well:
		return errFailed
	}
	return nil
}
