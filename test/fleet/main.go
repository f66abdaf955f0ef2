package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/statusd/statusd/test/campaign"
)

// plan is the plan of a measurement.
type plan struct {
	nodes, pods    int
	idle, kwokIdle time.Duration
	contenders     string
	kwok           string
	stages         string
	keep           bool
}

// idleOf is how long a contender is watched while nothing happens.
func (p *plan) idleOf(name string) time.Duration {
	if name == "kwok" && p.kwokIdle > 0 {
		return p.kwokIdle
	}
	return p.idle
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "nodes":
			campaign.Main("fleet nodes", runNodes)
			return
		case "informer":
			campaign.Main("fleet informer", runInformer)
			return
		}
	}
	campaign.Main("fleet", run)
}

func run(ctx context.Context, args []string) error {
	p := plan{}
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.IntVar(&p.nodes, "nodes", 1000, "how many nodes")
	flags.IntVar(&p.pods, "pods", 20, "how many pods on each node")
	flags.DurationVar(&p.idle, "idle", 2*time.Minute, "how long leases are watched while nothing happens")
	flags.DurationVar(&p.kwokIdle, "kwok-idle", 0, "the same for KWOK; 0: as long as -idle")
	flags.StringVar(&p.contenders, "contenders", "statusd,kwok", "which ones, in this order")
	flags.StringVar(&p.kwok, "kwok", filepath.Join("bin", "kwok"), "the binary of KWOK")
	flags.StringVar(&p.stages, "stages", "", "the directory kustomize/stage of KWOK's sources, with the stages that its users apply")
	flags.BoolVar(&p.keep, "keep", false, "end after the idle phase, without deletions")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var results []*result
	var failed []error
	for _, name := range strings.Split(p.contenders, ",") {
		r, err := p.measure(ctx, name)
		if r != nil {
			results = append(results, r)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			break
		}
	}
	p.print(results)
	return errors.Join(failed...)
}

// print prints the table of the results.
func (p *plan) print(results []*result) {
	row := func(what string, of func(*result) string) {
		cells := []string{what}
		for _, r := range results {
			cells = append(cells, of(r))
		}
		fmt.Println("| " + strings.Join(cells, " | ") + " |")
	}
	fmt.Printf("\n%d nodes × %d pods, idle for %v, KWOK for %v\n\n", p.nodes, p.pods, p.idle, p.idleOf("kwok"))
	row("", func(r *result) string { return r.name })
	row("---", func(*result) string { return "--:" })
	row("nodes Ready, s", func(r *result) string { return fmt.Sprintf("%.1f", r.registered.Seconds()) })
	row("pods Ready per second", func(r *result) string { return fmt.Sprintf("%.0f", float64(r.pods)/r.ready.Seconds()) })
	row("CPU until all are Ready, ms per pod", func(r *result) string { return fmt.Sprintf("%.2f", r.readyCPU.Seconds()*1000/float64(r.pods)) })
	row("requests per pod until Ready", func(r *result) string { return fmt.Sprintf("%.2f", r.requestsPerPod) })
	row("idle CPU, % of one", func(r *result) string { return fmt.Sprintf("%.1f", 100*r.idleCPU.Seconds()/p.idleOf(r.name).Seconds()) })
	row("idle requests per second besides leases and flaps", func(r *result) string { return fmt.Sprintf("%.1f", r.idleRequests) })
	row("lease renewals per second", func(r *result) string { return fmt.Sprintf("%.1f", r.renewals) })
	row("longest time between two renewals, s: idle; during the deletions", func(r *result) string {
		if p.keep {
			return fmt.Sprintf("%.1f", r.longestLease.Seconds())
		}
		return fmt.Sprintf("%.1f; %.1f", r.longestLease.Seconds(), r.longestBusyLease.Seconds())
	})
	row("flaps seen; wait of withdrawals p99", func(r *result) string { return r.flaps })
	row("RSS at the end of idle, MiB", func(r *result) string { return fmt.Sprintf("%.0f", float64(r.rss)/(1<<20)) })
	row("heap per node, KiB", func(r *result) string { return kib(r.heapPerNode) })
	row("heap per pod beyond an informer's, KiB", func(r *result) string { return kib(r.heapPerPod) })
	if p.keep {
		return
	}
	row("all deleted, pods per second", func(r *result) string { return fmt.Sprintf("%.0f", float64(r.pods)/r.deleted.Seconds()) })
	row("CPU of the deletions, ms per pod", func(r *result) string { return fmt.Sprintf("%.2f", r.deleteCPU.Seconds()*1000/float64(r.pods)) })
	row("CPU of the API server for the deletions, ms per pod", func(r *result) string { return fmt.Sprintf("%.2f", r.deleteServerCPU.Seconds()*1000/float64(r.pods)) })
	row("requests per pod of the deletions, the measurement's DELETE included", func(r *result) string { return r.deleteRequests })
}

func kib(bytes float64) string {
	if bytes == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", bytes/1024)
}
