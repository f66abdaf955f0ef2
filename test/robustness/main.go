package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/robustness/agent"
	"github.com/statusd/statusd/test/robustness/record"
)

// options are the settings of a campaign.
type options struct {
	duration time.Duration
	rounds   int // how many; 0: as many as there are in the duration
	// patience is how many times longer than promised all may take that depends on how fast the machine is.
	patience   int
	seed       uint64
	pods, rate int
	state      string // directory
	toxiproxy  string // binary
	replay     string // history that is judged again
	agent      string // binary of the agent; empty: this program
	faults     map[kind][]fault
	// untilViolation ends the campaign with the first round after which there is one.
	untilViolation bool
}

// bound is a bound on this machine.
func (o options) bound(d time.Duration) time.Duration { return d * time.Duration(o.patience) }

// path is of the history.
func (o options) path() string { return filepath.Join(o.state, "history.jsonl") }

func main() {
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := runAgent(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(1)
		}
		return
	}
	campaign.Main("robustness", run)
}

func runAgent(ctx context.Context, args []string) error {
	o, err := agent.Arguments(args)
	if err != nil {
		return err
	}
	return agent.Main(ctx, o, os.Stdin, os.Stdout)
}

func run(ctx context.Context, args []string) (err error) {
	var o options
	flags := flag.NewFlagSet("robustness", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 5*time.Minute, "how long")
	flags.IntVar(&o.rounds, "rounds", 0, "how many rounds, in place of a duration")
	flags.IntVar(&o.patience, "patience", 1, "how many times longer than promised all may take, for machines that are slow")
	flags.Uint64Var(&o.seed, "seed", 1, "of the faults and the traffic")
	flags.IntVar(&o.pods, "pods", 100, "how many pods there are")
	flags.IntVar(&o.rate, "rate", 50, "changes a second, about")
	flags.StringVar(&o.state, "state", "build/robustness", "directory for the history and all else that is kept")
	flags.StringVar(&o.toxiproxy, "toxiproxy", "bin/toxiproxy", "binary")
	flags.StringVar(&o.agent, "agent", "", "binary of the agent, such as bin/robustness-kubelet; this program by default")
	flags.StringVar(&o.replay, "replay", "", "judge this history, and run nothing")
	flags.BoolVar(&o.untilViolation, "until-violation", false, "end with the first round after which there is a violation")
	named := flags.String("faults", ".", "those whose names match this expression; of the server's and the agent's all if none does")
	if err := flags.Parse(args); err != nil {
		return err
	}
	expression, err := regexp.Compile(*named)
	if err != nil {
		return err
	}
	if o.faults = faultsOf(expression.MatchString); len(o.faults[ofAnswers])+len(o.faults[ofOthers]) == 0 {
		return fmt.Errorf("no fault matches %q", *named)
	}
	if o.patience < 1 || o.rounds < 0 {
		return errors.New("want a patience of at least 1, and no negative number of rounds")
	}
	if o.replay != "" {
		return conclude(o, o.replay)
	}
	if err := os.RemoveAll(o.state); err != nil {
		return err
	}
	if err := os.MkdirAll(o.state, 0o755); err != nil {
		return err
	}
	if err := play(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return conclude(o, o.path())
}

// play runs the campaign and writes its history.
func play(ctx context.Context, o options) (err error) {
	file, err := os.Create(o.path())
	if err != nil {
		return err
	}
	history := record.NewWriter(file)
	defer func() { err = errors.Join(err, history.Flush(), file.Close()) }()
	s := &storm{options: o, history: history, truth: newTruth(o.pods)}
	tearDown, err := s.setUp(ctx)
	if err != nil {
		return err
	}
	defer tearDown()
	var parts sync.WaitGroup
	working, cancel := context.WithCancel(ctx)
	parts.Go(func() { s.traffic(working, rand.New(rand.NewPCG(o.seed, 1<<40))) })
	err = pause(ctx, 5*time.Second)
	if err == nil {
		err = s.rounds(ctx)
	}
	cancel()
	parts.Wait()
	return err
}
