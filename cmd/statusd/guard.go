package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/queryapi"
)

func newGuard(plugin bool) *cobra.Command {
	q := &question{plugin: plugin}
	o, f := &output{}, &clusterQuestion{}
	would := false
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Show the verdict on the kubelet, its evidence, and the restarts",
		Long: "Show the verdict on the kubelet, its evidence, and the restarts.\n\n" +
			"If an unhealthy kubelet is not restarted, the output names the reason and what would help. --would shows the restarts\n" +
			"that a guard without the right to restart would have made. --all-nodes asks the observers of all nodes, through the\n" +
			"API server's proxy, and shows one line for each node, the worst first.",
		Example: "  statusd guard\n  statusd guard --would\n  kubectl statusd guard --all-nodes\n  statusd guard -o wide\n  statusd guard -o json | jq .health",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if f.all {
				return f.ask(cmd, q, o, verdictTable)
			}
			return q.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				report, err := client.Guard(ctx)
				if err != nil {
					return absence(err)
				}
				if would {
					return printWould(cmd.OutOrStdout(), o, report)
				}
				return printGuard(cmd.OutOrStdout(), o, report)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.addFlags(cmd)
	o.addFlag(cmd, "table", "wide", "json", "yaml")
	f.addAll(cmd)
	cmd.Flags().BoolVar(&would, "would", false, "show the restarts that a guard without the right to restart would have made")
	if !plugin { // which has no access to the socket
		cmd.AddCommand(newMaintenance())
	}
	return cmd
}

func newMaintenance() *cobra.Command {
	q := &question{}
	cmd := &cobra.Command{
		Use:   "maintenance DURATION|off",
		Short: "Keep the guard from restarting anything for a while",
		Long: "Keep the guard from restarting anything for a while, for instance when you stop the kubelet yourself. The kubelet is\n" +
			"still watched and judged. The maintenance ends by itself, and survives a restart of statusd.\n\n" +
			"The node accepts this on its Unix socket only.",
		Example: "  statusd guard maintenance 30m\n  statusd guard maintenance off",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			until, err := maintenanceUntil(args[0], time.Now())
			if err != nil {
				return fmt.Errorf("%w: %w", err, errUsage)
			}
			return q.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				report, err := client.Maintenance(ctx, until)
				if err != nil {
					return absence(err)
				}
				line := "no maintenance: the guard may restart what its policy allows"
				if !report.Maintenance.IsZero() {
					line = "nothing is restarted until " + report.Maintenance.UTC().Format(time.RFC3339)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
				return err
			})
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"30m", "2h", "off"}, cobra.ShellCompDirectiveNoFileComp),
	}
	q.addFlags(cmd)
	return cmd
}

// maintenanceUntil is when a maintenance of an argument ends; zero for off.
func maintenanceUntil(argument string, now time.Time) (time.Time, error) {
	if argument == "off" {
		return time.Time{}, nil
	}
	lasts, err := time.ParseDuration(argument)
	if err != nil || lasts <= 0 {
		return time.Time{}, fmt.Errorf("%q: want a duration such as 30m, or off", argument)
	}
	return now.Add(lasts).UTC().Truncate(time.Second), nil
}

func printGuard(out io.Writer, o *output, r guard.Report) error {
	if done, err := o.encoded(out, r); done {
		return err
	}
	now, colors := time.Now(), inColor(out)
	var b strings.Builder
	b.WriteString(verdictLine(&r, colors, now) + "\n")
	for _, reason := range r.Reasons {
		fmt.Fprintf(&b, "  %s, for %s: %s\n", plain(reason.Code), ago(reason.Since, now), plain(reason.Message))
	}
	for _, line := range restartLines(&r, now) {
		b.WriteString(plain(line) + "\n")
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	if err := evidenceTable(r.Evidence, colors, now).printAfterLine(out); err != nil {
		return err
	}
	return restartTable(r.Restarts, o.format == "wide", colors, now).printAfterLine(out)
}

// printWould prints the restarts of a dry run.
func printWould(out io.Writer, o *output, r guard.Report) error {
	if done, err := o.encoded(out, r.Would); done {
		return err
	}
	if len(r.Would) == 0 {
		_, err := fmt.Fprintln(out, "The guard would have restarted nothing.")
		return err
	}
	now := time.Now()
	t := &table{colors: inColor(out)}
	t.header("WOULD HAVE RESTARTED", "WHAT", "REASON")
	for _, would := range r.Would {
		t.add(cell{ago(would.At, now) + " ago", ""}, cell{string(would.Target()), ""}, cell{would.Reason, ""})
	}
	return t.print(out)
}

// printAfterLine prints a table below an empty line, and nothing if it has no rows but its header.
func (t *table) printAfterLine(out io.Writer) error {
	if len(t.rows) < 2 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return t.print(out)
}

func verdictLine(r *guard.Report, colors bool, now time.Time) string {
	color := map[guard.Health]string{guard.Healthy: green, guard.Degraded: yellow, guard.Unhealthy: red}[r.Health]
	line := "The kubelet is " + paint(cell{plain(string(r.Health)), color}, colors) + " for " + ago(r.Since, now)
	var of []string
	if r.Unit != "" {
		of = append(of, r.Unit)
	}
	if r.PID != 0 {
		of = append(of, fmt.Sprintf("pid %d", r.PID))
	}
	if !r.Started.IsZero() {
		of = append(of, "started "+ago(r.Started, now)+" ago")
	}
	if len(of) > 0 {
		line += " (" + plain(strings.Join(of, ", ")) + ")"
	}
	return line + "."
}

// restartLines say whether a restart helps, and what keeps the guard from one.
func restartLines(r *guard.Report, now time.Time) (lines []string) {
	switch {
	case r.Health == guard.Healthy:
	case r.Helps:
		lines = append(lines, "A restart would help.")
	case r.Do != "":
		lines = append(lines, "A restart would not help.")
	}
	if r.Do != "" {
		lines = append(lines, "What to do: "+r.Do)
	}
	if r.Withheld != "" {
		lines = append(lines, "Restart withheld: "+r.Withheld)
	}
	if r.Maintenance.After(now) {
		lines = append(lines, "Maintenance: nothing is restarted until "+timeOfDay(r.Maintenance)+".")
	}
	if r.NextRestart.After(now) {
		lines = append(lines, "The next restart is at "+timeOfDay(r.NextRestart)+" at the earliest.")
	}
	return lines
}

func timeOfDay(t time.Time) string { return t.Local().Format(time.DateTime) }

func evidenceTable(items []guard.Item, colors bool, now time.Time) *table {
	t := &table{colors: colors}
	t.header("EVIDENCE", "OK", "AGE", "WHAT")
	for _, item := range items {
		state, color, age := yesNo(item.OK), red, ago(item.At, now)
		switch {
		case item.Unknown:
			state, color = "unknown", ""
		case item.OK:
			color = green
		}
		if item.At.IsZero() {
			age = ""
		}
		t.add(cell{item.Name, ""}, cell{state, color}, cell{age, ""}, cell{item.Text, ""})
	}
	return t
}

func restartTable(restarts []guard.Restart, wide, colors bool, now time.Time) *table {
	t := &table{colors: colors}
	names := []string{"RESTARTED", "WHAT", "BY", "REASON", "RESULT", "EVIDENCE"}
	if wide {
		names = append(names, "MISSING")
	}
	t.header(names...)
	for _, r := range restarts {
		result, color := "done", ""
		if r.Err != "" {
			result, color = r.Err, red
		}
		cells := []cell{{ago(r.At, now) + " ago", ""}, {string(r.Target()), ""}, {r.By, ""}, {r.Reason, ""}, {result, color}, {r.Evidence, ""}}
		if wide {
			cells = append(cells, cell{r.EvidenceErr, ""})
		}
		t.add(cells...)
	}
	return t
}
