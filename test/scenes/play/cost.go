package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/scenes"
)

// costOptions say how much is measured. The defaults are those of the documents.
type costOptions struct {
	pods int
	// settle is left for what follows a start: a stock kubelet writes the status of each pod once more within two
	// minutes. watched is how long the observers are watched.
	settle, watched time.Duration
}

func (c *costOptions) flags(flags *flag.FlagSet) {
	flags.IntVar(&c.pods, "pods", 100, "for cost: how many pods")
	flags.DurationVar(&c.settle, "settle", 2*time.Minute, "for cost: the time before it is measured")
	flags.DurationVar(&c.watched, "watched", 2*time.Minute, "for cost: the time that is measured")
}

// cost measures what an observer needs beside a node with pods that only exist, without and with a guard. Both run at the same time, so
// that what differs is the guard.
func cost(ctx context.Context, o options, stage *scenes.Stage) error {
	names := make([]string, o.cost.pods)
	for i := range names {
		names[i] = fmt.Sprintf("idle-%d", i)
	}
	fmt.Printf("creating %d pods\n", o.cost.pods)
	const batch = 10 // what two cores can start at a time
	for part := range slices.Chunk(names, batch) {
		if err := stage.Pods(ctx, part...); err != nil {
			return err
		}
	}
	if err := stage.Calm(ctx); err != nil {
		return err
	}
	guarded, err := stage.Another(ctx, "guarded", "", fmt.Sprintf(`guard:
  enabled: true
  unit: ""
  healthzURL: http://127.0.0.1:%d/healthz
outputs: {conditions: true, events: true}
`, stage.Node.Kubelet.HealthzPort))
	if err != nil {
		return err
	}
	defer guarded.Close()
	fmt.Printf("waiting %v for things to settle, then watching for %v\n", o.cost.settle, o.cost.watched)
	if err := campaign.Pause(ctx, o.cost.settle); err != nil {
		return err
	}
	addresses := []string{stage.Observer.Address, guarded.Address}
	before, err := scrapeAll(ctx, addresses)
	if err != nil {
		return err
	}
	if err := campaign.Pause(ctx, o.cost.watched); err != nil {
		return err
	}
	after, err := scrapeAll(ctx, addresses)
	if err != nil {
		return err
	}
	fmt.Printf("\nbeside a stock kubelet with %d idle pods, over %v:\n\n", o.cost.pods, o.cost.watched)
	without, with := o.cost.measured(before[0], after[0]), o.cost.measured(before[1], after[1])
	without.print("statusd observe")
	with.print("with its guard")
	fmt.Printf("%-20s %s\n", "the guard", with.Less(without.Needs))
	return nil
}

// costOfChurn prints what observers have needed since they started, one without and one with a guard.
func costOfChurn(ctx context.Context, observer, guarded *scenes.Observer) error {
	values, err := scrapeAll(ctx, []string{observer.Address, guarded.Address})
	if err != nil {
		return err
	}
	for i, name := range []string{"statusd observe", "with its guard"} {
		c := costOptions{watched: time.Since(time.Unix(int64(values[i]["process_start_time_seconds"]), 0))}
		c.measured(nil, values[i]).print(name)
	}
	return nil
}

// needs are what an observer needs: also calls of the runtime and audits per minute, and milliseconds per audit.
type needs struct {
	campaign.Needs
	cri, audits, audit float64
}

func (c *costOptions) measured(before, after map[string]float64) needs {
	growth := func(name string) float64 { return after[name] - before[name] }
	minutes := c.watched.Minutes()
	return needs{
		Needs: campaign.Needs{
			CPU: 100 * growth("process_cpu_seconds_total") / c.watched.Seconds(), Resident: after["process_resident_memory_bytes"] / (1 << 20),
			Requests: growth("statusd_observe_api_requests_total") / minutes,
		},
		cri: growth("statusd_observe_cri_calls_total") / minutes, audits: growth("statusd_audit_duration_seconds_count") / minutes,
		audit: 1000 * growth("statusd_audit_duration_seconds_sum") / growth("statusd_audit_duration_seconds_count"),
	}
}

func (n needs) print(name string) {
	fmt.Printf("%-20s %s\n", name, n.Needs)
	fmt.Printf("%-20s %8.1f calls of the runtime (CRI) per minute %8.1f audits per minute %8.2f ms each\n", "", n.cri, n.audits, n.audit)
}

// scrapeAll reads the metrics of some observers.
func scrapeAll(ctx context.Context, addresses []string) (all []map[string]float64, err error) {
	for _, address := range addresses {
		values, err := campaign.Scrape(ctx, "http://"+address+"/metrics")
		if err != nil {
			return nil, err
		}
		all = append(all, values)
	}
	return all, nil
}
