package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/internal/view"
)

func newHistory(plugin bool) *cobra.Command {
	q := &question{plugin: plugin}
	o := &output{}
	cmd := &cobra.Command{
		Use:   "history [[NAMESPACE/]POD]",
		Short: "Show what happened to a pod, or to the node, and when the API server stored the status",
		Long: "Show what happened to a pod, or to the node, and when the API server stored the status.\n\n" +
			"Only the statusd that runs a pod has its history. The history of a deleted pod is kept for an hour.",
		Example: "  statusd history web\n  statusd history -n shop web -o json\n  statusd history",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return q.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				if len(args) == 0 {
					node, err := client.Node(ctx)
					if err != nil {
						return err
					}
					return printHistory(cmd.OutOrStdout(), o, node.History)
				}
				namespace, name := q.podName(args[0])
				pod, err := client.Pod(ctx, namespace, name)
				if err != nil {
					return err
				}
				return printHistory(cmd.OutOrStdout(), o, pod.History)
			})
		},
		ValidArgsFunction: q.completePods,
	}
	q.addFlags(cmd)
	q.addNamespace(cmd, false)
	o.addFlag(cmd, "table", "wide", "json", "yaml")
	return cmd
}

func printHistory(out io.Writer, o *output, records []view.Record) error {
	if done, err := o.encoded(out, records); done {
		return err
	}
	t := &table{colors: inColor(out)}
	names := []string{"TIME", "KIND", "SUBJECT", "FROM", "TO", "REASON"}
	if o.format == "wide" {
		names = append(names, "ACCEPTED", "MESSAGE")
	}
	t.header(names...)
	for _, r := range records {
		subject := r.Container
		if r.Subject != "" && subject != "" {
			subject += "/"
		}
		cells := []cell{
			{r.Observed.Local().Format("2006-01-02 15:04:05.000"), faint}, {string(r.Kind), ""}, {subject + r.Subject, ""},
			{r.From, ""}, {r.To, ""}, {r.Reason, ""},
		}
		if o.format == "wide" {
			accepted := ""
			if r.Accepted != nil {
				accepted = "+" + text.Took(r.Accepted.Sub(r.Observed))
			}
			cells = append(cells, cell{accepted, ""}, cell{r.Message, ""})
		}
		t.add(cells...)
	}
	return t.print(out)
}
