package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/queryapi"
)

func newSilence() *cobra.Command {
	cmd := &cobra.Command{
		Use: "silence", Short: "Keep alerts from the outputs for a while",
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("specify what to do: silence add, silence list or silence expire: %w", errUsage)
		},
	}
	cmd.AddCommand(newSilenceAdd(), newSilenceList(), newSilenceExpire())
	return cmd
}

// silenceAdd is silence add with its flags.
type silenceAdd struct {
	question
	output
	lasts       time.Duration
	comment, by string
}

func newSilenceAdd() *cobra.Command {
	c := &silenceAdd{}
	cmd := &cobra.Command{
		Use:   "add MATCHER… --for DURATION --comment TEXT",
		Short: "Keep the alerts that match all of the matchers from the outputs",
		Long: "Keep the alerts that match all of the matchers from the outputs, and print the ID of the silence.\n" +
			"The alerts are still shown. A matcher is NAME=VALUE, NAME!=VALUE, NAME=~EXPRESSION or\n" +
			"NAME!~EXPRESSION, as for amtool; a word alone is alertname=WORD.\n\n" +
			"The node accepts silences on its Unix socket only.",
		Example: "  statusd silence add KubePodNotReady namespace=shop --for 2h --comment 'the shop is being moved'",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.silence(args, time.Now())
			if err != nil {
				return fmt.Errorf("%w: %w", err, errUsage)
			}
			return c.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				stored, err := client.AddSilence(ctx, s)
				if err != nil {
					return absence(err)
				}
				if done, err := c.encoded(cmd.OutOrStdout(), stored); done {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), plain(stored.ID))
				return err
			})
		},
		ValidArgsFunction: c.completeMatchers,
	}
	c.question.addFlags(cmd)
	cmd.Flags().Var((*days)(&c.lasts), "for", "how long, such as 30m, 12h or 2d")
	cmd.Flags().StringVar(&c.comment, "comment", "", "the reason")
	cmd.Flags().StringVar(&c.by, "by", "", "who silences; by default the user")
	c.output.addFlag(cmd, "name", "json", "yaml")
	return cmd
}

// days is a duration as rules write it, 2d included.
type days time.Duration

// String, Set and Type implement pflag.Value.
func (d *days) String() string {
	if *d == 0 {
		return "" // there is no default
	}
	return time.Duration(*d).String()
}

func (d *days) Set(text string) error {
	lasts, err := time.ParseDuration(text)
	if err != nil {
		lasts, err = rulefile.ParseDuration(text)
	}
	*d = days(lasts)
	return err
}

func (*days) Type() string { return "duration" }

// silence makes one of the arguments and flags.
func (c *silenceAdd) silence(args []string, now time.Time) (alert.Silence, error) {
	if err := c.check(); err != nil {
		return alert.Silence{}, err
	}
	if c.lasts <= 0 {
		return alert.Silence{}, fmt.Errorf("specify a duration, as in --for 2h")
	}
	s := alert.Silence{Until: now.Add(c.lasts).UTC().Truncate(time.Second), Comment: c.comment, By: c.by}
	if s.By == "" {
		s.By = userName()
	}
	for _, argument := range args {
		if !strings.ContainsAny(argument, "=!~") {
			argument = "alertname=" + argument
		}
		m, err := alert.ParseMatcher(argument)
		if err != nil {
			return s, err
		}
		s.Matchers = append(s.Matchers, m)
	}
	return s, s.Check(now)
}

// userName is the name of the user who runs the command.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

func newSilenceList() *cobra.Command {
	q, o := &question{}, &output{}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"query"}, Short: "Show the silences, and until when they last",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return q.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				list, err := client.Silences(ctx)
				if err != nil {
					return absence(err)
				}
				if len(list.Items) == 0 && o.format == "table" {
					fmt.Fprintln(cmd.ErrOrStderr(), "Nothing is silenced.")
					return nil
				}
				return printSilences(cmd.OutOrStdout(), o, list)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.addFlags(cmd)
	o.addFlag(cmd, "table", "json", "yaml", "name")
	return cmd
}

func printSilences(out io.Writer, o *output, list queryapi.SilenceList) error {
	if done, err := o.encoded(out, list); done {
		return err
	}
	t := &table{colors: inColor(out)}
	if o.format == "table" {
		t.header("ID", "MATCHERS", "UNTIL", "BY", "COMMENT")
	}
	for _, s := range list.Items {
		if o.format == "name" {
			t.add(cell{s.ID, ""})
			continue
		}
		var matchers []string
		for _, m := range s.Matchers {
			matchers = append(matchers, m.String())
		}
		t.add(cell{s.ID, ""}, cell{strings.Join(matchers, " "), ""}, cell{timeOfDay(s.Until), ""}, cell{s.By, ""}, cell{s.Comment, ""})
	}
	return t.print(out)
}

func newSilenceExpire() *cobra.Command {
	q := &question{}
	cmd := &cobra.Command{
		Use: "expire ID…", Short: "End silences now",
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return q.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				for _, id := range ids {
					if err := client.ExpireSilence(ctx, id); err != nil {
						return expireError(id, err)
					}
				}
				return nil
			})
		},
		ValidArgsFunction: q.completeSilences,
	}
	q.addFlags(cmd)
	return cmd
}

// expireError names the silence, since several can be named.
func expireError(id string, err error) error {
	if apierrors.IsNotFound(err) {
		return err // which names it
	}
	return fmt.Errorf("silence %s: %w", id, err)
}

// completeSilences completes the IDs of silences.
func (q *question) completeSilences(cmd *cobra.Command, _ []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	q.timeout = completionPatience
	_ = q.ask(cmd, func(ctx context.Context, client *queryapi.Client) error { // a shell has nowhere to show an error
		list, err := client.Silences(ctx)
		for _, s := range list.Items {
			ids = append(ids, s.ID)
		}
		return err
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeMatchers completes matchers with the labels of the alerts that there are.
func (q *question) completeMatchers(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	q.timeout = completionPatience
	found := map[string]bool{}
	_ = q.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
		list, err := client.Alerts(ctx)
		for _, a := range list.Items {
			for name, value := range a.Labels {
				found[name+"="+value] = true
			}
		}
		return err
	})
	return slices.Sorted(maps.Keys(found)), cobra.ShellCompDirectiveNoFileComp
}
