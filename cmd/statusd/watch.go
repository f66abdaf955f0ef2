package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

// reconnectAfter is how long a lost watch waits before it goes on.
const reconnectAfter = time.Second

// watchCommand is watch with its flags.
type watchCommand struct {
	question
	output
	last string
}

func newWatch(plugin bool) *cobra.Command {
	c := &watchCommand{question: question{plugin: plugin}}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show pods and each change of a pod, until interrupted",
		Long: "Show pods and each change of a pod, until interrupted.\n\n" +
			"After a lost connection or a restart of statusd, the watch resumes without a gap.",
		Example: "  statusd watch -A\n  statusd watch -o json | jq .why",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			client, err := c.node(ctx)
			if err != nil {
				return err
			}
			defer client.Close()
			return c.follow(ctx, client, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.question.addFlags(cmd)
	c.addNamespace(cmd, true)
	c.output.addFlag(cmd, "table", "wide", "json", "name")
	return cmd
}

// follow prints events, and reconnects, until ctx ends.
func (c *watchCommand) follow(ctx context.Context, client *queryapi.Client, out, problems io.Writer) error {
	namespace := c.inNamespace()
	for {
		err := c.once(ctx, client, out, namespace)
		var refusal *apierrors.StatusError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refusal) && !apierrors.IsTooManyRequests(err):
			return err
		}
		fmt.Fprintf(problems, "statusd: watch: %v; trying again\n", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectAfter):
		}
	}
}

func (c *watchCommand) once(ctx context.Context, client *queryapi.Client, out io.Writer, namespace string) error {
	for event, err := range client.Watch(ctx, c.last, "") {
		if err != nil {
			return err
		}
		if event.ID != "" {
			c.last = event.ID
		}
		if err := c.show(out, event, namespace); err != nil {
			return err
		}
	}
	return nil
}

func (c *watchCommand) show(out io.Writer, event queryapi.Event, namespace string) error {
	if event.Kind != "pod" && event.Kind != "gone" {
		return nil
	}
	var row view.PodSummary
	if err := json.Unmarshal(event.Data, &row); err != nil {
		return fmt.Errorf("decode an event: %w", err)
	}
	if namespace != "" && row.Namespace != namespace {
		return nil
	}
	var err error
	switch {
	case c.format == "json":
		_, err = fmt.Fprintf(out, "%s\n", event.Data)
	case c.format == "name":
		_, err = fmt.Fprintln(out, "pod/"+plain(row.Name))
	case event.Kind == "gone":
		_, err = fmt.Fprintf(out, "%s   %-40s %s\n", time.Now().Format(time.TimeOnly), c.shownName(&row), "gone")
	default:
		_, err = fmt.Fprintf(out, "%s   %-40s %d/%d   %-20s %s\n", time.Now().Format(time.TimeOnly), c.shownName(&row), row.Ready, row.Containers,
			paint(cell{plain(row.Status), stateColor(row.State)}, inColor(out)), c.rest(&row))
	}
	return err
}

func (c *watchCommand) shownName(row *view.PodSummary) string {
	if c.all {
		return plain(row.Namespace + "/" + row.Name)
	}
	return plain(row.Name)
}

// rest is the reason for the pod's state in the wide format, and the number of restarts otherwise.
func (c *watchCommand) rest(row *view.PodSummary) string {
	if c.format == "wide" {
		return plain(cmp.Or(row.Brief, row.Why))
	}
	return fmt.Sprintf("%d restarts", row.Restarts)
}
