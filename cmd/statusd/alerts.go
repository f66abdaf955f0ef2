package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/queryapi"
)

// alertsCommand is alerts with its flags.
type alertsCommand struct {
	question
	output
	whole bool
}

func newAlerts(plugin bool) *cobra.Command {
	c := &alertsCommand{question: question{plugin: plugin}}
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "Show the alerts that fire, the most severe first",
		Long: "Show the alerts that fire, the most severe first. --all adds pending alerts, whose\n" +
			"expression is not true for long enough yet, and resolved alerts.",
		Example: "  statusd alerts\n  statusd alerts --all -o wide\n  statusd alerts -o json | jq '.items[].rule'",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			return c.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				list, err := client.Alerts(ctx)
				if err != nil {
					return absence(err)
				}
				return c.print(cmd, list)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.question.addFlags(cmd)
	cmd.Flags().BoolVar(&c.whole, "all", false, "also pending and resolved alerts")
	c.output.addFlag(cmd, "table", "wide", "json", "yaml")
	return cmd
}

func (c *alertsCommand) print(cmd *cobra.Command, list queryapi.AlertList) error {
	if !c.whole {
		list.Items = slices.DeleteFunc(list.Items, func(a alert.Alert) bool { return a.State != alert.Firing })
	}
	out := cmd.OutOrStdout()
	if done, err := c.encoded(out, list); done {
		return err
	}
	if len(list.Items) == 0 {
		hint := "No alert fires; --all shows pending and resolved alerts."
		if c.whole {
			hint = "There are no alerts."
		}
		fmt.Fprintln(cmd.ErrOrStderr(), hint)
		return nil
	}
	return c.table(out, list.Items)
}

func (c *alertsCommand) table(out io.Writer, alerts []alert.Alert) error {
	now := time.Now()
	t := &table{colors: inColor(out)}
	names := []string{"STATE", "SEVERITY", "RULE", "OBJECT", "SINCE", "SUMMARY"}
	if c.format == "wide" {
		names = append(names, "TO DO", "SILENCED", "ACTIONS", "LABELS")
	}
	t.header(names...)
	for i := range alerts {
		a := &alerts[i]
		state := string(a.State)
		if a.Silenced != "" && c.format != "wide" {
			state += " (silenced)"
		}
		cells := []cell{{state, alertColor(a)}, {a.Severity, ""}, {a.Rule, ""}, {alertObject(a), ""}, {ago(alertSince(a), now), ""}, {alertSummary(a), ""}}
		if c.format == "wide" {
			cells = append(cells, cell{a.Annotations["action"], ""}, cell{a.Silenced, ""}, cell{alertActions(a), ""}, cell{alertLabels(a), ""})
		}
		t.add(cells...)
	}
	return t.print(out)
}

func alertColor(a *alert.Alert) string {
	switch {
	case a.State != alert.Firing || a.Silenced != "":
		return faint
	case a.Severity == "critical":
		return red
	}
	return yellow
}

// alertObject is what an alert is about: a pod, a container, the node or the kubelet.
func alertObject(a *alert.Alert) string {
	if a.Pod == "" {
		return "(" + a.Scope + ")"
	}
	return strings.TrimSpace(a.Namespace + "/" + a.Pod + " " + a.Container)
}

// alertSince is when an alert came into its state.
func alertSince(a *alert.Alert) time.Time {
	switch {
	case a.State == alert.Resolved && a.Resolved != nil:
		return *a.Resolved
	case a.State == alert.Firing && a.Firing != nil:
		return *a.Firing
	}
	return a.Since
}

// alertSummary is the annotation that people read first.
func alertSummary(a *alert.Alert) string {
	for _, name := range []string{"summary", "message", "description"} {
		if text := a.Annotations[name]; text != "" {
			return text
		}
	}
	return ""
}

func alertActions(a *alert.Alert) string {
	var list []string
	for _, action := range a.Actions {
		text := action.Action + " " + action.Result
		if action.Message != "" {
			text += " (" + action.Message + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

func alertLabels(a *alert.Alert) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		list = append(list, name+"="+a.Labels[name])
	}
	return strings.Join(list, ",")
}
