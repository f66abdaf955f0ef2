package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/test/scenes"
	"github.com/statusd/statusd/test/stock"
)

// guarded is a kubelet whose guard is watched.
type guarded struct {
	stage           *scenes.Stage
	program, socket string
	client          *queryapi.Client
	rows            []string
}

// scenario is a fault with its expected results.
type scenario struct {
	name     string
	breaks   func(ctx context.Context, p *guarded) error
	expected string
	// told is the report that is waited for, on the page and of statusd guard. If reason is not empty, the Node must have
	// the condition in this status for this reason, and an Event must come.
	told      func(guard.Report) bool
	condition v1.ConditionStatus
	reason    string
	event     guard.NoticeKind
	// mended ends it; then the kubelet must be healthy again, after so many restarts.
	mended   func(ctx context.Context, p *guarded) error
	restarts int
}

func kill(s string) func(context.Context, *guarded) error {
	return func(ctx context.Context, p *guarded) error {
		report, err := p.client.Guard(ctx)
		if err != nil {
			return err
		}
		return p.inside(ctx, "kill", "-"+s, strconv.Itoa(report.PID))
	}
}

func unhealthyBy(code string) func(guard.Report) bool {
	return func(r guard.Report) bool {
		return r.Health == guard.Unhealthy && len(r.Reasons) > 0 && r.Reasons[0].Code == code
	}
}

func helpedBy(text string) func(guard.Report) bool {
	return func(r guard.Report) bool {
		return r.Withheld == "a restart would not help" && strings.HasPrefix(r.Do, text)
	}
}

// runsWell reports whether there is a process to break, and it is healthy: its node is registered, too.
func runsWell(r guard.Report) bool { return r.Health == guard.Healthy && r.PID != 0 }

var scenarios = []scenario{
	{name: "kubelet killed (SIGKILL)", breaks: kill("KILL"), expected: "unhealthy, restarted",
		told: unhealthyBy(guard.ProcessGone), condition: v1.ConditionFalse, reason: guard.ProcessGone, event: guard.NoticeUnhealthy, restarts: 1},
	{name: "kubelet ends with exit code 0 (SIGTERM)", breaks: kill("TERM"), expected: "unhealthy, restarted",
		told: unhealthyBy(guard.ProcessGone), condition: v1.ConditionFalse, reason: guard.ProcessGone, event: guard.NoticeUnhealthy, restarts: 1},
	{name: "kubelet frozen (SIGSTOP)", breaks: kill("STOP"), expected: "unhealthy, restarted",
		told: unhealthyBy(guard.ProcessStopped), condition: v1.ConditionFalse, reason: guard.ProcessStopped, event: guard.NoticeUnhealthy, restarts: 1},
	{name: "kubelet killed during maintenance", expected: "unhealthy, not restarted until it ends",
		breaks: func(ctx context.Context, p *guarded) error {
			if err := p.statusd(ctx, "guard", "maintenance", "10m"); err != nil {
				return err
			}
			return kill("KILL")(ctx, p)
		},
		told: func(r guard.Report) bool {
			return unhealthyBy(guard.ProcessGone)(r) && strings.HasPrefix(r.Withheld, "maintenance until")
		}, condition: v1.ConditionFalse, reason: guard.ProcessGone, event: guard.NoticeSuppressed,
		mended: func(ctx context.Context, p *guarded) error { return p.statusd(ctx, "guard", "maintenance", "off") }, restarts: 1},
	{name: "containerd frozen (SIGSTOP)", expected: "degraded, kubelet not restarted: restart the runtime",
		breaks: func(ctx context.Context, p *guarded) error { return p.stage.Node.Containerd.Process().Pause(ctx) },
		told:   helpedBy("restart the container runtime"), condition: v1.ConditionTrue, reason: guard.RuntimeDown, event: guard.NoticeSuppressed,
		mended: func(_ context.Context, p *guarded) error { p.stage.Node.Containerd.Process().Resume(); return nil }},
	{name: "API server down", expected: "degraded, not restarted: bring back the API server",
		breaks: func(_ context.Context, p *guarded) error { return p.stage.Node.API.Kill() },
		told:   helpedBy("bring back the API server"),
		mended: func(ctx context.Context, p *guarded) error { return p.stage.Node.API.Restart(ctx) }},
}

// policy lets the demonstration restart the kubelet often.
const policy = `  restartsPerHour: 20
  coolDown: 10s
`

// guardDemo breaks a guarded kubelet in several ways and prints a table of the observations with
// their times.
func guardDemo(ctx context.Context, o options, stage *scenes.Stage) error {
	observer, err := stage.Guard(ctx, policy)
	if err != nil {
		return err
	}
	defer observer.Close()
	p := &guarded{stage: stage, program: o.program, socket: observer.Socket, client: observer.Client()}
	fmt.Printf("statusd observe guards the kubelet; the page is at http://%s/\n", observer.Address)
	return p.all(ctx)
}

// all plays all scenarios.
func (p *guarded) all(ctx context.Context) error {
	if _, err := p.await(ctx, runsWell); err != nil {
		return err
	}
	if err := p.statusd(ctx, "guard"); err != nil {
		return err
	}
	for _, s := range scenarios {
		fmt.Printf("\n== %s\n", s.name)
		if err := p.scenario(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Print("\n| scenario | expected | seen | page after | `statusd guard` after | condition after | Event after | healthy again after |\n|---|---|---|---|---|---|---|---|\n" + strings.Join(p.rows, ""))
	return nil
}

// patience is how long a scenario may take before the demonstration prints the missing results and
// ends.
const patience = 5 * time.Minute

// scenario plays one and adds its row. Page, command line, condition and Event are watched all at once, so that each time
// is its own. A condition that is False only until the restart is caught by a watch. It begins when nothing speaks of the
// scenario before it any more.
func (p *guarded) scenario(ctx context.Context, s scenario) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	before, err := p.await(ctx, runsWell)
	if err != nil {
		return err
	}
	if err := p.awaitHealthyNode(ctx); err != nil {
		return err
	}
	changes, err := p.conditions(ctx)
	if err != nil {
		return err
	}
	old, err := p.events(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := s.breaks(ctx, p); err != nil {
		return err
	}
	// A restart may follow at once; then the report has it, and its reason.
	noticed := func(r guard.Report) bool {
		return s.told(r) || s.restarts > 0 && len(r.Restarts) > len(before.Restarts) && r.Restarts[len(before.Restarts)].Reason == s.reason
	}
	told, sightings, err := p.sightings(ctx, s, noticed, changes, old, begin)
	if err != nil {
		return err
	}
	if s.mended != nil {
		if err := s.mended(ctx, p); err != nil {
			return err
		}
	}
	well, err := p.await(ctx, func(r guard.Report) bool {
		return runsWell(r) && len(r.Restarts) >= len(before.Restarts)+s.restarts
	})
	if err != nil {
		return err
	}
	restarts := len(well.Restarts) - len(before.Restarts)
	if restarts != s.restarts {
		return fmt.Errorf("%d restarts, want %d", restarts, s.restarts)
	}
	healthy := time.Since(begin)
	fmt.Printf("%s healthy again\n", seconds(healthy))
	row := fmt.Sprintf("| %s | %s | %s |", s.name, s.expected, seen(told, restarts))
	for _, sighting := range sightings {
		row += " " + sighting.String() + " |"
	}
	p.rows = append(p.rows, row+" "+seconds(healthy)+" |\n")
	return nil
}

func seen(r guard.Report, restarts int) string {
	if r.Health == guard.Healthy { // it was restarted before anything asked
		return "unhealthy (" + r.Restarts[len(r.Restarts)-1].Reason + "), restarted"
	}
	text := fmt.Sprintf("%s (%s), ", r.Health, r.Reasons[0].Code)
	switch {
	case restarts > 0 && strings.HasPrefix(r.Withheld, "maintenance"):
		return text + "not restarted: maintenance; restarted after it"
	case restarts > 0 && r.Withheld != "" && r.Under == "":
		return text + "restarted once pause and cool-down were over"
	case restarts > 0:
		return text + "restarted"
	}
	do, _, _ := strings.Cut(r.Do, ":")
	return text + "not restarted: " + do
}

// await waits until the report is as wanted. It is read as the page does.
func (p *guarded) await(ctx context.Context, wanted func(guard.Report) bool) (report guard.Report, err error) {
	err = stock.Await(ctx, func() error {
		node, err := p.client.Node(ctx)
		if err != nil {
			return err
		}
		if node.Kubelet == nil {
			return errors.New("the page has no kubelet")
		}
		if report = *node.Kubelet; !wanted(report) {
			return fmt.Errorf("the kubelet is %s: %s, withheld: %s", report.Health, guard.Summary(report.Verdict), report.Withheld)
		}
		return nil
	})
	return report, err
}

// statusd runs a command and shows its output.
func (p *guarded) statusd(ctx context.Context, args ...string) error {
	fmt.Println("$ statusd " + strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, p.program, append(args, "--socket", p.socket)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// inside runs a program in the node's namespaces, where the kubelet has the number that the guard reports.
func (p *guarded) inside(ctx context.Context, program string, args ...string) error {
	process, err := p.stage.Node.Start("command", program, args...)
	if err != nil {
		return err
	}
	select {
	case <-process.Exited():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
