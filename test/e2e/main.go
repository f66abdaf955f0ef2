package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/statusd/statusd/test/e2e/report"
)

//go:embed reasons.txt
var reasonsText string

// results has a directory for the last run of each agent.
const results = "build/e2e"

type options struct {
	agent       string
	focus, skip string
	procs       int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, w io.Writer) error {
	if len(args) == 0 {
		return errors.New("do what? run, or compare AGENT AGENT")
	}
	switch args[0] {
	case "run", "inside":
		o, err := parse(args[1:])
		if err != nil {
			return err
		}
		if args[0] == "inside" {
			return inside(ctx, o)
		}
		return run(ctx, o, w)
	case "compare":
		if len(args) != 3 {
			return errors.New("compare which two agents?")
		}
		return compare(w, [2]string{args[1], args[2]})
	}
	return fmt.Errorf("unknown command %q", args[0])
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("e2e run", flag.ContinueOnError)
	flags.StringVar(&o.agent, "agent", "stock", "what runs the pods: stock, the kubelet as it is; kubelet, with statusd's manager; statusd")
	flags.StringVar(&o.focus, "focus", `\[NodeConformance\]`, "regular expression of the names of specs that run")
	flags.StringVar(&o.skip, "skip", `\[Serial\]|\[Disruptive\]|\[Slow\]`, "regular expression of the names of specs that do not")
	flags.IntVar(&o.procs, "procs", 10, "how many specs run at a time")
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, err
}

// run builds, lets the specs run in namespaces of their own, and judges.
func run(ctx context.Context, o options, w io.Writer) error {
	reasons, err := report.ParseReasons(reasonsText)
	if err != nil {
		return err
	}
	if err := build(ctx, o.agent); err != nil {
		return err
	}
	dir := filepath.Join(results, o.agent)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := isolated(ctx, o); err != nil {
		return err
	}
	return judge(o.agent, reasons, w)
}

// judge writes the table of an agent's last run, and fails if a failure has no reason.
func judge(agent string, reasons report.Reasons, w io.Writer) error {
	dir := filepath.Join(results, agent)
	last, err := report.Read(filepath.Join(dir, "report.json"))
	if err != nil {
		return err
	}
	table, err := os.Create(filepath.Join(dir, "table.md"))
	if err != nil {
		return err
	}
	report.WriteTable(io.MultiWriter(w, table), agent, last, reasons)
	if err := table.Close(); err != nil {
		return err
	}
	switch unexplained := reasons.Unexplained(last); {
	case len(last.Problems) > 0:
		return fmt.Errorf("the suite itself failed, see %s", filepath.Join(dir, "specs.log"))
	case len(last.Specs) == 0:
		return errors.New("no spec was selected")
	case len(unexplained) > 0:
		return fmt.Errorf("%d specs failed without a reason in test/e2e/reasons.txt, see %s", len(unexplained), filepath.Join(dir, "specs.log"))
	}
	return nil
}

// compare writes where two agents differ, and fails if they do.
func compare(w io.Writer, agents [2]string) error {
	var runs [2]*report.Run
	for i, agent := range agents {
		var err error
		if runs[i], err = report.Read(filepath.Join(results, agent, "report.json")); err != nil {
			return fmt.Errorf("the last run of %s (make e2e AGENT=%s): %w", agent, agent, err)
		}
	}
	if differences := report.WriteComparison(w, agents, runs); len(differences) > 0 {
		return fmt.Errorf("%d specs ended differently", len(differences))
	}
	return nil
}
