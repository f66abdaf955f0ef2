package main

import (
	"context"
	"time"

	"github.com/statusd/statusd/test/campaign"
)

// guardCost says how the cost of the guard of statusd run is measured.
type guardCost struct {
	pods, rounds int
	watched      time.Duration
}

// guardCost measures what statusd run needs with its guard and without it, in turns on one node, so that what differs is the guard.
func (d *demo) guardCost(ctx context.Context, o guardCost) error {
	return d.withCrowd(ctx, o.pods, withoutControllers, func(c *crowd) error {
		sums := map[bool]*campaign.Needs{true: {}, false: {}}
		c.say("\n%d rounds, each %s without the guard and %s with it\n", o.rounds, o.watched, o.watched)
		for range o.rounds {
			for _, guarded := range []bool{false, true} {
				found, err := c.idle(ctx, guarded, o.watched)
				if err != nil {
					return err
				}
				sum := sums[guarded]
				n := float64(o.rounds)
				sum.CPU, sum.Resident, sum.Requests = sum.CPU+found.CPU/n, sum.Resident+found.Resident/n, sum.Requests+found.Requests/n
			}
		}
		c.say("%-20s %s", "without guard", sums[false])
		c.say("%-20s %s", "statusd with guard", sums[true])
		c.say("%-20s %s", "the guard", sums[true].Less(*sums[false]))
		return nil
	})
}

// idle starts statusd again, with or without its guard, and watches it.
func (c *crowd) idle(ctx context.Context, guarded bool, watched time.Duration) (found campaign.Needs, err error) {
	if err := c.daemon.stop(ctx); err != nil {
		return found, err
	}
	config := c.daemon.config
	config.Guard.Enabled = guarded
	again, err := c.startStatusd(config)
	if err != nil {
		return found, err
	}
	c.daemon = again
	var requests []float64
	before, after, err := c.watch(ctx, watched, func() error {
		n, err := c.requests(ctx)
		requests = append(requests, n)
		return err
	})
	if err != nil {
		return found, err
	}
	return campaign.Needs{
		CPU:      100 * (after.statusd.cpu - before.statusd.cpu).Seconds() / watched.Seconds(),
		Resident: float64(after.statusd.resident) / 1024,
		Requests: (requests[1] - requests[0]) / watched.Minutes(),
	}, nil
}

// requests counts the API server's answers to all clients: the server's own requests are the same in each round.
func (c *crowd) requests(ctx context.Context) (float64, error) {
	text, err := c.admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	values, err := campaign.Metrics(string(text))
	return values["apiserver_request_total"], err
}
