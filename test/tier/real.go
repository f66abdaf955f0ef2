package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/controlplane/binary"
	"github.com/statusd/statusd/test/controlplane/sharedserver"
	"github.com/statusd/statusd/test/progress"
)

// waiting is how many packages of real tests run at the same time: most of their time they wait.
const waiting = 6

// runReal runs the tests with the build tag real, and no others.
func runReal(ctx context.Context, o options, patterns []string) (err error) {
	packages, err := list(ctx, "real", patterns)
	if err != nil {
		return err
	}
	var paths, tests []string
	for i := range packages {
		names, err := packages[i].testsTagged("real")
		if err != nil {
			return err
		}
		if len(names) > 0 {
			paths, tests = append(paths, packages[i].ImportPath), append(tests, names...)
		}
	}
	if o.run == "" {
		o.run = exactly(tests)
	}
	o.count = 1 // go test's cache does not see the environment of a real test

	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	if err := binaries.Build(ctx, os.Stdout, bin, binaries.All()...); err != nil {
		return err
	}
	program, err := binary.Build(ctx, os.Stdout)
	if err != nil {
		return err
	}
	server, err := sharedserver.Start(ctx, program)
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Printf("%d packages with real tests; they share an API server with its data in %s\n", len(paths), server.Dir)

	parallel := o.parallel
	if parallel == 0 {
		parallel = waiting
	}
	line := progress.On(os.Stdout)
	r := newReport(line, func(text string) { line.Set("%s", text) }, len(paths))
	args := []string{"-tags=real", "-timeout", o.timeout.String(), "-p", strconv.Itoa(parallel)}
	if o.race == "on" {
		args = append(args, "-race")
	}
	problem := goTest(ctx, r, append(args, o.selection()...), paths, []string{binaries.Variable + "=" + bin, sharedserver.Variable + "=" + server.Dir})
	if died := server.Died(); died != nil {
		fmt.Fprintln(line, died)
		r.fail()
	}
	return finish(ctx, r, line, problem)
}
