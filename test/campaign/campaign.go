// Package campaign is what measurements and demonstrations have in common: they start, wait, read metrics, and report.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/progress"
)

// Out is where campaigns report, with a line of progress while they wait.
var Out = progress.On(os.Stdout)

// Main is the main function of a campaign: it runs until it is done or interrupted.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Pause waits, and shows how long it still does.
func Pause(ctx context.Context, d time.Duration) error {
	end := time.NewTimer(d)
	defer end.Stop()
	shown := time.NewTicker(time.Second)
	defer shown.Stop()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end.C:
			Out.Close()
			return nil
		case <-shown.C:
			Out.Set("%s of %s", time.Since(began).Round(time.Second), d)
		}
	}
}

// ErrEnded is part of an error if a program has ended that was waited for.
var ErrEnded = errors.New("the program has ended")

// Await calls try until it succeeds; its error describes the unmet condition. [ErrEnded] ends the
// wait.
func Await(ctx context.Context, every time.Duration, try func() error) error {
	for {
		err := try()
		if err == nil || errors.Is(err, ErrEnded) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(every):
		}
	}
}

// Spread is the middle, the 99th percentile and the largest of some times.
func Spread(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	at := func(p int) time.Duration { return Percentile(times, p).Round(100 * time.Microsecond) }
	return fmt.Sprintf("p50 %s  p99 %s  max %s", at(50), at(99), at(100))
}

// Percentile is the smallest value that at least p percent of the values do not exceed; zero without
// values.
func Percentile[T int | float64 | time.Duration](values []T, p int) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, max(0, (len(sorted)*p+99)/100-1))]
}

// Scrape reads the metrics of a process and adds up the values of each name.
func Scrape(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return Metrics(string(text))
}

// Metrics parses a text of metrics and adds up the values of each name.
func Metrics(text string) (map[string]float64, error) {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		if value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64); err == nil && name != "#" {
			values[name] += value
		}
	}
	if len(values) == 0 {
		return nil, errors.New("there are no metrics")
	}
	return values, nil
}

// Needs are what a process needs: percent of one CPU, MiB, and requests per minute to the API server.
type Needs struct{ CPU, Resident, Requests float64 }

func (n Needs) String() string {
	return fmt.Sprintf("%8.2f %% of one CPU %8.1f MiB resident %8.1f requests per minute", n.CPU, n.Resident, n.Requests)
}

// Less is what n needs more than another.
func (n Needs) Less(other Needs) string {
	return fmt.Sprintf("%+8.2f %% of one CPU %+8.1f MiB resident %+8.1f requests per minute; CPU %.2f times",
		n.CPU-other.CPU, n.Resident-other.Resident, n.Requests-other.Requests, n.CPU/other.CPU)
}
