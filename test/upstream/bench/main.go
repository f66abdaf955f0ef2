package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/statusd/statusd/test/upstream/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	root   string
	only   string
	sides  string
	rounds int
	// enough is after how long no further scenario is begun; the next run goes on there. Zero: all are measured.
	enough time.Duration
	quick  bool
	// patience is how long each run waits for the machine to become idle.
	patience time.Duration
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "../..", "the repository: build/bench.json and docs/ are written there")
	flags.StringVar(&o.only, "only", "", "measure only these results, separated by commas; writes to build/bench-partial/")
	flags.StringVar(&o.sides, "sides", "", "measure only these sides, separated by commas, such as statusd,fixed 8; writes to build/bench-partial/")
	flags.DurationVar(&o.enough, "for", 0, "begin no further scenario after so long, and go on there the next time; the pages are written after the last one")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each side is measured; the median counts")
	flags.BoolVar(&o.quick, "quick", false, "one short round to see that everything works; writes to build/bench-partial/")
	flags.DurationVar(&o.patience, "patience", 15*time.Second, "how long each run waits for the machine to become idle")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.rounds = 1
	}
	if o.rounds < 1 || flags.NArg() > 0 {
		return o, fmt.Errorf("want at least one round and no arguments, got %d rounds and %q; see -help", o.rounds, flags.Args())
	}
	return o, nil
}

// complete reports whether the results are those of everything, as they should be published.
func (o options) complete() bool { return !o.quick && o.only == "" && o.sides == "" }

func run(ctx context.Context, args []string, w io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	chosen, err := choose(scenarios(), o.only)
	if err != nil {
		return err
	}
	if chosen, err = onSides(chosen, o.sides); err != nil {
		return err
	}
	if err := prepare(o.quick); err != nil {
		return err
	}
	build := filepath.Join(o.root, "build")
	lab, err := newLab(build, o, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.close()) }()

	limits, err := readLimits(o.root)
	if err != nil {
		return err
	}
	measured := &report.Run{Machine: report.ThisMachine(o.rounds), Limits: limits}
	parts := filepath.Join(build, "bench-parts.json")
	if o.enough > 0 && o.complete() {
		if err := measured.Continue(parts); err != nil {
			return err
		}
	}
	begin := time.Now()
	for i, s := range chosen {
		if measured.Has(s.yields[0].name) {
			continue
		}
		if o.enough > 0 && time.Since(begin) > o.enough {
			fmt.Fprintf(w, "%d of %d scenarios are measured; the same command measures the others\n", i, len(chosen))
			return measured.Save(parts)
		}
		fmt.Fprintf(w, "%d/%d %s\n", i+1, len(chosen), s.names())
		results, err := s.run(ctx, lab, o.rounds, w)
		if err != nil {
			return err
		}
		measured.Results = append(measured.Results, results...)
	}
	fmt.Fprintf(w, "\nAll of it took %s.\n\n", time.Since(begin).Round(time.Second))
	if err := report.WriteText(w, measured); err != nil {
		return err
	}
	return publish(w, measured, o, build)
}

// readLimits returns the table that the simulation of the limit has recorded.
func readLimits(root string) (string, error) {
	recorded, err := os.ReadFile(filepath.Join(root, "status", "testdata", "limit", "found.txt"))
	if err != nil {
		return "", err
	}
	var table strings.Builder
	for line := range strings.Lines(string(recorded)) {
		if strings.HasPrefix(line, "|") {
			table.WriteString(line)
		}
	}
	return table.String(), nil
}

// publish writes the files: in their places if the run was complete, else aside.
func publish(w io.Writer, measured *report.Run, o options, build string) error {
	json, docs := filepath.Join(build, "bench.json"), filepath.Join(o.root, "docs", "evidence")
	if !o.complete() {
		docs = filepath.Join(build, "bench-partial")
		json = filepath.Join(docs, "bench.json")
	}
	if err := report.WriteFiles(measured, json, docs); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nwritten: %s, %s\n", json, filepath.Join(docs, "benchmarks.md"))
	return err
}

// prepare silences the kubelet's log and says how long package testing measures a call.
func prepare(quick bool) error {
	klogFlags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(klogFlags)
	klogFlags.Set("logtostderr", "false")
	klogFlags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	testing.Init()
	benchtime := "500ms"
	if quick {
		benchtime = "50ms"
	}
	return flag.Set("test.benchtime", benchtime)
}

func (s scenario) names() string {
	var names []string
	for _, y := range s.yields {
		names = append(names, y.name)
	}
	return strings.Join(names, ", ")
}

// choose returns the scenarios with one of the wanted results, or all.
func choose(all []scenario, only string) ([]scenario, error) {
	if only == "" {
		return all, nil
	}
	wanted := strings.Split(only, ",")
	found := make(map[string]bool)
	var chosen []scenario
	for _, s := range all {
		has := slices.ContainsFunc(s.yields, func(y yield) bool {
			if !slices.Contains(wanted, y.name) {
				return false
			}
			found[y.name] = true
			return true
		})
		if has {
			chosen = append(chosen, s)
		}
	}
	for _, name := range wanted {
		if !found[name] {
			return nil, fmt.Errorf("there is no result %q; there are: %s", name, allNames(all))
		}
	}
	return chosen, nil
}

// onSides returns the scenarios with some of their sides only, or with all.
func onSides(chosen []scenario, only string) ([]scenario, error) {
	if only == "" {
		return chosen, nil
	}
	wanted := strings.Split(only, ",")
	var having []scenario
	for _, s := range chosen {
		s.sides = slices.DeleteFunc(slices.Clone(s.sides), func(one side) bool { return !slices.Contains(wanted, string(one)) })
		if len(s.sides) > 0 {
			having = append(having, s)
		}
	}
	if len(having) == 0 {
		return nil, fmt.Errorf("no chosen scenario has a side %q", only)
	}
	return having, nil
}

func allNames(all []scenario) string {
	var names []string
	for _, s := range all {
		names = append(names, s.names())
	}
	return strings.Join(names, ", ")
}
