package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/test/campaign"
)

func main() { campaign.Main("guardfleet", run) }

// trouble is what all nodes of a fleet meet.
type trouble struct {
	name        string
	begin, mend func(context.Context, *fleet) error
	harmful     bool // restarts of working kubelets are harm
}

func upgraded(v version) func(context.Context, *fleet) error {
	return func(_ context.Context, f *fleet) error {
		f.upgrade(v)
		return nil
	}
}

var troubles = []trouble{
	{name: "a webhook refuses every write", harmful: true, begin: func(ctx context.Context, f *fleet) error { return f.refuse(ctx) }, mend: func(ctx context.Context, f *fleet) error { return f.accept(ctx) }},
	{name: "the API server is frozen (SIGSTOP)", harmful: true,
		begin: func(_ context.Context, f *fleet) error { f.server.Freeze(); return nil },
		mend:  func(_ context.Context, f *fleet) error { f.server.Thaw(); return nil }},
	{name: "a kubelet that renews no lease, on all nodes", begin: upgraded(leaves), mend: upgraded(good)},
	{name: "a kubelet that ends 5 s after each start, on all nodes", begin: upgraded(crashes), mend: upgraded(good)},
}

// row is what came of a trouble.
type row struct {
	trouble       string
	total, most   int
	counts        map[guard.Health]int
	words         string
	calmAgainFrom time.Duration
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("guardfleet", flag.ExitOnError)
	nodes := flags.Int("nodes", 50, "nodes of each fleet")
	phase := flags.Duration("phase", 10*time.Minute, "how long each trouble lasts")
	_ = flags.Parse(args) // ends the program itself
	dir, err := os.MkdirTemp("", "guardfleet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var (
		running sync.WaitGroup
		results [2][]row
		errs    [2]error
	)
	for i, bounded := range []bool{false, true} {
		running.Go(func() {
			results[i], errs[i] = campaignOf(ctx, filepath.Join(dir, fmt.Sprintf("bounded-%t", bounded)), *nodes, *phase, bounded)
		})
	}
	running.Wait()
	fmt.Printf("%d nodes, %v of each trouble:\n\n", *nodes, *phase)
	fmt.Println("| trouble | bound of the cluster | restarts | most within a minute | nodes at its end | what most guards say | all healthy again after |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for t := range troubles {
		for i, bounded := range []string{"no", "yes"} {
			if t < len(results[i]) {
				r := results[i][t]
				fmt.Printf("| %s | %s | %d | %d | %d healthy, %d degraded, %d unhealthy | %s | %v |\n", r.trouble, bounded, r.total, r.most,
					r.counts[guard.Healthy], r.counts[guard.Degraded], r.counts[guard.Unhealthy], r.words, r.calmAgainFrom.Round(time.Second))
			}
		}
	}
	return errors.Join(errs[0], errs[1])
}

// campaignOf takes one fleet through all troubles.
func campaignOf(ctx context.Context, dir string, nodes int, phase time.Duration, bounded bool) (rows []row, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := newFleet(ctx, dir, nodes, bounded)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.healthy(ctx); err != nil {
		return nil, err
	}
	for _, t := range troubles {
		fmt.Printf("%s bound %t: %s\n", time.Now().Format(time.TimeOnly), bounded, t.name)
		began := time.Now()
		if err := t.begin(ctx, f); err != nil {
			return rows, err
		}
		select {
		case <-ctx.Done():
			return rows, context.Cause(ctx)
		case <-time.After(phase):
		}
		r := row{trouble: t.name}
		r.counts, r.words = f.verdicts()
		mended := time.Now()
		if err := t.mend(ctx, f); err != nil {
			return rows, err
		}
		if err := f.healthy(ctx); err != nil {
			return rows, err
		}
		r.calmAgainFrom = time.Since(mended)
		r.total, r.most = f.restarts(began)
		rows = append(rows, r)
		if t.harmful && r.total > 0 {
			return rows, fmt.Errorf("%s: %d kubelets that work were restarted", t.name, r.total)
		}
		if bounded && r.most > max(1, nodes*2/100)*3 {
			return rows, fmt.Errorf("%s: %d restarts within a minute with the bound of the cluster", t.name, r.most)
		}
	}
	return rows, nil
}
