package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(untilOutputCloses(context.Background()), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends everything at once. One that comes right after the first is the
	// same one, passed on by whatever this was started with.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	if err := command(ctx, os.Args[1:]); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// untilOutputCloses ends with the terminal (SIGHUP) or with the reader of the output (SIGPIPE). Both
// signals stay caught, because more of them come while everything is stopped, and must not end it.
func untilOutputCloses(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-gone
		cancel()
	}()
	return ctx
}

func command(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	flags.SetInterspersed(false) // what follows a mode is for the command of with
	standalone := flags.Bool("standalone", false, "without a control plane")
	state := flags.String("state", "state", "where everything is kept")
	statusd := flags.String("statusd", "bin/statusd", "the statusd to run")
	beside := flags.String("beside", "", "for speed: the statusd of another version, with its statusd-shim beside it")
	faults := faultOptions{}
	flags.IntVar(&faults.faults, "faults", 200, "for faults: how many")
	flags.IntVar(&faults.pods, "pods", 30, "for faults: on a node with how many pods")
	flags.Uint64Var(&faults.seed, "seed", 1, "for faults: which ones")
	kills := flags.Int("kills", 100, "for alerting-kills: how many")
	replaced := upgradeOptions{}
	flags.StringVar(&replaced.previous, "previous", "build/previous", "for upgrade: the directory of the version before")
	flags.StringVar(&replaced.next, "next", "build/next", "for upgrade: the directory of the version that replaces it")
	flags.IntVar(&replaced.times, "times", 6, "for upgrade: how often statusd is replaced")
	flags.IntVar(&replaced.pods, "running", 200, "for upgrade: under how many running pods")
	cost := guardCost{}
	flags.IntVar(&cost.pods, "idle", footprintSize, "for guard-cost: on a node with how many idle pods")
	flags.IntVar(&cost.rounds, "rounds", 2, "for guard-cost: how often it is measured with and without")
	flags.DurationVar(&cost.watched, "watched", watched, "for guard-cost: how long each time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d := &demo{out: campaign.Out, state: *state, statusd: *statusd, built: controlplane.Built, build: controlplane.Build}
	switch mode := flags.Arg(0); {
	case mode == "" && *standalone:
		return d.standalone(ctx)
	case mode == "":
		return d.joined(ctx)
	case mode == "with":
		return d.with(ctx, flags.Args()[1:])
	case mode == "footprint":
		return d.footprint(ctx)
	case mode == "guard-cost":
		return d.guardCost(ctx, cost)
	case mode == "clients":
		return d.clients(ctx)
	case mode == "serving":
		return d.serving(ctx)
	case mode == "alerting":
		return d.alerting(ctx)
	case mode == "alerting-kills":
		return d.alertingKills(ctx, *kills, faults.seed)
	case mode == "upgrade":
		replaced.seed = faults.seed
		return d.upgrade(ctx, replaced)
	case mode == "speed":
		return d.speed(ctx, *beside)
	case mode == "scale":
		return d.scale(ctx)
	case mode == "unreachable":
		return d.unreachable(ctx)
	case mode == "faults":
		if err := namespaces(); err != nil {
			return err
		}
		return d.runFaults(ctx, faults)
	default:
		return fmt.Errorf("unknown mode %q: want none, with, footprint, guard-cost, serving, alerting, alerting-kills, upgrade, speed, scale, unreachable, clients or faults", mode)
	}
}
