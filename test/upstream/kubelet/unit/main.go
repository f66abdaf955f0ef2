// Command unit runs the kubelet's own unit tests of the packages that use a status manager, from the tree in which statusd's manager has
// the place of the stock one, and holds the failures against explained.txt: a failure without an explanation fails the command, and so
// does an explanation of a test that passes.
//
//	unit [-v] [PACKAGE...]   packages below pkg/kubelet, all of the list by default; "." is pkg/kubelet itself
//
// It runs in the top directory, after test/upstream/kubelet/build.sh tree.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statusd/statusd/test/campaign"
)

const (
	work   = "build/kubelet-statusd"
	prefix = "k8s.io/kubernetes/pkg/kubelet"
)

var packages = []string{"status", "prober", "pod", "allocation", "eviction", "nodeshutdown", "config", "."}

//go:embed explained.txt
var explainedText string

func main() { campaign.Main("unit", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("unit", flag.ExitOnError)
	verbose := flags.Bool("v", false, "print what failed tests said")
	_ = flags.Parse(args) // ends the program itself
	wanted := packages
	if flags.NArg() > 0 {
		wanted = flags.Args()
	}
	explained, err := parseExplained(explainedText)
	if err != nil {
		return err
	}
	if !slices.Contains(wanted, "status") {
		// Its tests are not compiled.
	} else if err := prepareStatus(filepath.Join(work, "kubernetes", "pkg", "kubelet", "status"), explained.without("status")); err != nil {
		return err
	}
	table := "| package | tests | passed | failed | left out |\n|---|--:|--:|--:|--:|\n"
	var problems []error
	for _, name := range wanted {
		outcome, err := test(ctx, name, *verbose)
		if err != nil {
			return err
		}
		left := len(explained.without(name))
		table += fmt.Sprintf("| `%s` | %d | %d | %d | %d |\n", path.Join("pkg/kubelet", name), len(outcome)+left, outcome.count("pass")+outcome.count("skip"), outcome.count("fail"), left)
		problems = append(problems, explained.judge(name, outcome)...)
	}
	campaign.Out.Close()
	fmt.Print(table)
	for _, e := range explained {
		if slices.Contains(wanted, e.pkg) {
			fmt.Printf("%s %s: %s: %s\n", e.pkg, e.test, e.kind, e.why)
		}
	}
	return errors.Join(problems...)
}

// explanation is a line of explained.txt: PACKAGE TEST KIND: WHY.
type explanation struct{ pkg, test, kind, why string }

type explanations []explanation

// The kinds of explanations. Tests of kind internals cannot be compiled, and are left out of their file.
const (
	kindInternals = "internals"
	kindDiffers   = "differs"
	kindMachine   = "machine"
)

func parseExplained(text string) (explanations, error) {
	var list explanations
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		head, why, found := strings.Cut(line, ": ")
		fields := strings.Fields(head)
		if !found || len(fields) != 3 || !slices.Contains([]string{kindInternals, kindDiffers, kindMachine}, fields[2]) {
			return nil, fmt.Errorf("explained.txt: want PACKAGE TEST internals|differs|machine: WHY, have %q", line)
		}
		list = append(list, explanation{fields[0], fields[1], fields[2], why})
	}
	return list, nil
}

// without returns the tests of a package that are left out.
func (list explanations) without(pkg string) []string {
	var tests []string
	for _, e := range list {
		if e.pkg == pkg && e.kind == kindInternals {
			tests = append(tests, e.test)
		}
	}
	return tests
}

// judge returns the problems of the outcome of a package.
func (list explanations) judge(pkg string, got outcome) (problems []error) {
	explained := map[string]bool{}
	for _, e := range list {
		if e.pkg != pkg {
			continue
		}
		explained[e.test] = true
		switch result, ran := got[e.test]; {
		case e.kind == kindInternals && ran:
			problems = append(problems, fmt.Errorf("%s %s ran, and explained.txt leaves it out", pkg, e.test))
		case e.kind == kindDiffers && result != "fail":
			problems = append(problems, fmt.Errorf("%s %s is explained as a failure, and did not fail", pkg, e.test))
		}
	}
	for test, result := range got {
		if result == "fail" && !explained[test] {
			problems = append(problems, fmt.Errorf("%s %s failed, and explained.txt does not say why", pkg, test))
		}
	}
	return problems
}

// outcome is pass, fail or skip for each test of a package.
type outcome map[string]string

func (o outcome) count(result string) (n int) {
	for _, r := range o {
		if r == result {
			n++
		}
	}
	return n
}

// test runs the tests of a package.
func test(ctx context.Context, name string, verbose bool) (outcome, error) {
	campaign.Out.Set("%s: compiling", name)
	cmd := exec.CommandContext(ctx, "go", "test", "-mod=mod", "-json", "-count=1", path.Join(prefix, name))
	cmd.Dir = work
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	got, said := outcome{}, map[string]string{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue
		}
		test, _, _ := strings.Cut(event.Test, "/")
		said[test] += event.Output
		if event.Test != "" && event.Test == test && slices.Contains([]string{"pass", "fail", "skip"}, event.Action) {
			got[test] = event.Action
			campaign.Out.Set("%s: %d tests, %d failed", name, len(got), got.count("fail"))
		}
	}
	failed := cmd.Wait()
	if failed != nil && got.count("fail") == 0 {
		return nil, fmt.Errorf("%s: %w\n%s%s", name, failed, problems.String(), said[""])
	}
	if verbose {
		for test, result := range got {
			if result == "fail" {
				fmt.Fprintf(os.Stderr, "=== %s %s\n%s", name, test, said[test])
			}
		}
	}
	return got, nil
}
