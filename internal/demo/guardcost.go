package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// guardCost says how the cost of the guard of statusd run is measured.
type guardCost struct {
	pods, rounds int
	watched      time.Duration
}

// idle is what statusd needs in one round: percent of one CPU, MiB, and requests per minute that the API server has answered.
type idle struct{ cpu, resident, requests float64 }

// guardCost measures what statusd run needs with its guard and without it, in turns on one node, so that what differs is the guard.
func (d *demo) guardCost(ctx context.Context, o guardCost) error {
	return d.withCrowd(ctx, o.pods, withoutControllers, func(c *crowd) error {
		sums := map[bool]*idle{true: {}, false: {}}
		c.say("\n%d rounds, each %s without the guard and %s with it\n", o.rounds, o.watched, o.watched)
		for range o.rounds {
			for _, guarded := range []bool{false, true} {
				found, err := c.idle(ctx, guarded, o.watched)
				if err != nil {
					return err
				}
				sum := sums[guarded]
				sum.cpu, sum.resident, sum.requests = sum.cpu+found.cpu, sum.resident+found.resident, sum.requests+found.requests
			}
		}
		for _, guarded := range []bool{false, true} {
			sum, n := sums[guarded], float64(o.rounds)
			sum.cpu, sum.resident, sum.requests = sum.cpu/n, sum.resident/n, sum.requests/n
			c.say("%-20s %8.2f %% of one CPU %8.1f MiB resident %8.1f requests per minute", map[bool]string{true: "statusd with guard", false: "without guard"}[guarded], sum.cpu, sum.resident, sum.requests)
		}
		with, without := sums[true], sums[false]
		c.say("%-20s %+8.2f %% of one CPU %+8.1f MiB resident %+8.1f requests per minute; CPU %.2f times", "the guard",
			with.cpu-without.cpu, with.resident-without.resident, with.requests-without.requests, with.cpu/without.cpu)
		return nil
	})
}

// idle starts statusd again, with or without its guard, and watches it.
func (c *crowd) idle(ctx context.Context, guarded bool, watched time.Duration) (found idle, err error) {
	if err := c.daemon.stop(ctx); err != nil {
		return found, err
	}
	config := c.daemon.config
	config.Guard.Enabled, config.Guard.NodeCondition, config.Guard.Events = guarded, guarded, guarded
	again, err := c.startStatusd(config)
	if err != nil {
		return found, err
	}
	c.daemon = again
	if err := pause(ctx, settle); err != nil {
		return found, err
	}
	requests, err := c.requests(ctx)
	if err != nil {
		return found, err
	}
	before, err := c.usage()
	if err != nil {
		return found, err
	}
	if err := pause(ctx, watched); err != nil {
		return found, err
	}
	after, err := c.usage()
	if err != nil {
		return found, err
	}
	all, err := c.requests(ctx)
	return idle{
		cpu:      100 * (after.statusd.cpu - before.statusd.cpu).Seconds() / watched.Seconds(),
		resident: float64(after.statusd.resident) / 1024,
		requests: (all - requests) / watched.Minutes(),
	}, err
}

// requests are those that the API server has answered to anyone: what it does for itself is the same in each round.
func (c *crowd) requests(ctx context.Context) (sum float64, err error) {
	text, err := c.admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("metrics of the API server: %w", err)
		}
		sum += n
	}
	return sum, nil
}
