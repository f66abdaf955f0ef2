// Command tier runs one of the two tiers of tests and reports on them while they run.
//
//	go run ./test/tier fast    what needs only Go: make test
//	go run ./test/tier real    the tests with the build tag real: make test-real
//
// The tier fast runs packages with goroutines under the race detector, if there is a C compiler. Tests of such a package in files
// with the build tag !race run without: long ones, whose goroutines shorter tests run under the detector. The tier real builds the
// programs of the repository once, starts one API server for all packages, and runs only the tests of files with the tag.
// Arguments after the name of the tier are packages (default ./...). A failing test is printed at once, with its output;
// the last lines are the slowest tests and how many passed, failed and were skipped. The exit code is 1 if anything failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tier:", err)
		os.Exit(1)
	}
}

// options are those of both tiers.
type options struct {
	run      string        // tests to run, as go test's
	race     string        // auto, on, off
	parallel int           // packages at the same time
	timeout  time.Duration // of a package
	count    int           // as go test's; 0 takes results from the cache
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "fast" && args[0] != "real" {
		return errors.New("which tier? fast or real")
	}
	real, o := args[0] == "real", options{}
	flags := flag.NewFlagSet("tier "+args[0], flag.ContinueOnError)
	flags.StringVar(&o.run, "run", "", "the tests to run, as go test's")
	flags.StringVar(&o.race, "race", "auto", "on, off, or auto: for packages with goroutines of the fast tier")
	flags.IntVar(&o.parallel, "p", 0, "how many packages run at the same time, with 1 one more without the race detector; 0: twice the cores, real tests: 6")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long the tests of a package may take, on a busy machine too: more than twice as long as the slowest does")
	flags.IntVar(&o.count, "count", 0, "1: do not take results from the cache")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if real {
		return runReal(ctx, o, patterns)
	}
	return runFast(ctx, o, patterns)
}
