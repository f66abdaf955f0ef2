package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/overview"
	"github.com/statusd/statusd/internal/view"
)

// clusterQuestion is what the commands that ask about all nodes have in common.
type clusterQuestion struct {
	all       bool
	observers string
}

// maxProblems is how many nodes without an answer are listed by name.
const maxProblems = 10

func (f *clusterQuestion) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.observers, "observer-namespace", overview.Namespace, "with all nodes: the `NAMESPACE` that the observers run in")
}

func (f *clusterQuestion) addAll(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all-nodes", false, "ask the observers of all nodes, through the API server's proxy")
	f.addFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("all-nodes", "server")
	cmd.MarkFlagsMutuallyExclusive("all-nodes", "socket")
}

func newNodes(plugin bool) *cobra.Command {
	q, o, f := &question{plugin: plugin}, &output{}, &clusterQuestion{}
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Show all nodes of the cluster with the findings of their observers, the worst first",
		Long: "Show all nodes of the cluster with the findings of their observers, the worst first: the verdict on the kubelet, and how\n" +
			"much drift there is.\n\n" +
			"The observers are asked through the API server's proxy to their pods, which works while a kubelet does not. The command needs\n" +
			"rights to list nodes and, in the namespace of the observers, to list pods and to get pods/proxy. A node whose observer\n" +
			"does not answer is shown with the conditions of its Node, and named below the table.\n\n" +
			"The exit code is 5 if some nodes do not answer.",
		Example: "  kubectl statusd nodes\n  kubectl statusd nodes -o json | jq '.[] | select(.overview.guard.health == \"unhealthy\").name'",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.ask(cmd, q, o, nodesTable)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.addFlags(cmd)
	f.addFlags(cmd)
	o.addFlag(cmd, "table", "json", "yaml")
	return cmd
}

// ask gathers what the observers say and prints it as a table, or as it is. The exit code is 5 if some do not answer.
func (f *clusterQuestion) ask(cmd *cobra.Command, q *question, o *output, shown func(nodes []overview.Node, colors bool, now time.Time) *table) error {
	nodes, err := f.gather(cmd, q)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if done, err := o.encoded(out, nodes); err != nil {
		return err
	} else if !done {
		if t := shown(nodes, inColor(out), time.Now()); len(t.rows) > 1 {
			if err := t.print(out); err != nil {
				return err
			}
		}
	}
	return f.partial(cmd.ErrOrStderr(), nodes)
}

func (f *clusterQuestion) gather(cmd *cobra.Command, q *question) ([]overview.Node, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), q.timeout)
	defer cancel()
	client, _, err := q.apiServer()
	if err != nil {
		return nil, err
	}
	return overview.Gather(ctx, client, f.observers)
}

// partial names the nodes that have not answered.
func (f *clusterQuestion) partial(out io.Writer, nodes []overview.Node) error {
	var silent []overview.Node
	for _, n := range nodes {
		if n.Overview == nil {
			silent = append(silent, n)
		}
	}
	if len(silent) == 0 {
		return nil
	}
	fmt.Fprintf(out, "statusd: %d of %d nodes have answered. Not known:\n", len(nodes)-len(silent), len(nodes))
	for i, n := range silent {
		if i == maxProblems {
			fmt.Fprintf(out, "  and %d more: -o json names them\n", len(silent)-i)
			break
		}
		fmt.Fprintf(out, "  %s: %s\n", plain(n.Name), plain(n.Problem))
	}
	return exitError(exitUnknown)
}

var severityColors = map[overview.Severity]string{overview.Broken: red, overview.Wrong: red, overview.Impaired: yellow, overview.NotSeen: yellow, overview.Limited: yellow}

func nodesTable(nodes []overview.Node, colors bool, now time.Time) *table {
	t := &table{colors: colors}
	t.header("NODE", "READY", "KUBELET", "FOR", "REASONS", "DRIFT", "SILENT", "RESTARTS", "OBSERVER")
	for i := range nodes {
		n := &nodes[i]
		color := severityColors[n.Severity()]
		if n.Overview == nil {
			t.add(cell{n.Name, color}, dash(string(n.Ready)), byCondition(string(n.Healthy), "healthy", "unhealthy"), dash(""), dash(""),
				byCondition(string(n.Truthful), "none", "some"), dash(""), dash(""), cell{n.Problem, yellow})
			continue
		}
		kubelet, since, reasons, restarts := "not guarded", "", "", ""
		if g := n.Overview.Guard; g != nil {
			kubelet, since, reasons = string(g.Health), ago(g.Since, now), strings.Join(g.Reasons, ",")
			restarts = fmt.Sprint(g.Restarts)
		}
		t.add(cell{n.Name, color}, dash(string(n.Ready)), cell{kubelet, color}, dash(since), dash(reasons), dash(driftWords(n.Overview)), dash(silentWords(n.Overview)), dash(restarts),
			cell{"answers", ""})
	}
	return t
}

// byCondition is what a condition of the Node says where its writer does not answer.
func byCondition(status, good, bad string) cell {
	switch status {
	case "True":
		return cell{good + " (condition)", ""}
	case "False":
		return cell{bad + " (condition)", red}
	}
	return cell{"unknown", ""}
}

func dash(text string) cell {
	if text == "" {
		text = "-"
	}
	return cell{text, ""}
}

func driftWords(o *view.Overview) string {
	if o.Audit == nil {
		return ""
	}
	if o.Audit.NodeMissing {
		return "the API has no such node"
	}
	var words []string
	for _, d := range o.Audit.Drift {
		words = append(words, fmt.Sprintf("%s×%d", d.Kind, d.Count))
	}
	return strings.Join(words, ",")
}

func silentWords(o *view.Overview) string {
	if o.Audit == nil {
		return ""
	}
	var words []string
	for _, side := range o.Audit.Silent {
		words = append(words, string(side))
	}
	return strings.Join(words, ",")
}

// driftTable has one row for each node and kind of drift.
func driftTable(nodes []overview.Node, colors bool, now time.Time) *table {
	t := &table{colors: colors}
	t.header("NODE", "KIND", "COUNT", "SINCE", "CERTAINTY", "DETAILS")
	for i := range nodes {
		n := &nodes[i]
		if n.Overview == nil || n.Overview.Audit == nil {
			continue
		}
		for _, d := range n.Overview.Audit.Drift {
			t.add(cell{n.Name, ""}, cell{string(d.Kind), red}, cell{fmt.Sprint(d.Count), ""}, cell{ago(d.Since, now), ""}, cell{string(d.Certainty), ""}, cell{"exec " + n.Pod, ""})
		}
	}
	return t
}

// verdictTable has one row per node, the healthy ones last.
func verdictTable(nodes []overview.Node, colors bool, now time.Time) *table {
	t := &table{colors: colors}
	t.header("NODE", "HEALTH", "FOR", "REASONS", "RESTART HELPS", "RESTARTS", "LAST", "WOULD", "WITHHELD")
	color := map[guard.Health]string{guard.Healthy: green, guard.Degraded: yellow, guard.Unhealthy: red}
	for i := range nodes {
		n := &nodes[i]
		if n.Overview == nil || n.Overview.Guard == nil {
			continue
		}
		g := n.Overview.Guard
		helps := ""
		if g.Health != guard.Healthy {
			helps = yesNo(g.Helps)
		}
		withheld := g.Withheld
		if g.Maintenance.After(now) {
			withheld = "maintenance until " + timeOfDay(g.Maintenance)
		}
		t.add(cell{n.Name, ""}, cell{string(g.Health), color[g.Health]}, cell{ago(g.Since, now), ""}, dash(strings.Join(g.Reasons, ",")), dash(helps),
			cell{fmt.Sprint(g.Restarts), ""}, cell{ago(g.LastRestart, now), ""}, cell{fmt.Sprint(g.Would), ""}, dash(withheld))
	}
	return t
}

// auditAll is audit --all-nodes.
func (f *clusterQuestion) auditAll(cmd *cobra.Command, q *question, o *output) error {
	nodes, err := f.gather(cmd, q)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	drift, audited := 0, 0
	var limited []string
	for i := range nodes {
		drift += nodes[i].Drift()
		if seen := nodes[i].Overview; seen != nil && seen.Audit != nil {
			audited++
			if len(seen.Audit.Silent) > 0 {
				limited = append(limited, plain(nodes[i].Name)+" ("+plain(silentWords(seen))+")")
			}
		}
	}
	done, err := o.encoded(out, nodes)
	if err == nil && !done {
		err = printDrift(out, nodes, drift, audited, f.observers)
	}
	if err != nil {
		return err
	}
	unknown := f.partial(cmd.ErrOrStderr(), nodes)
	if len(limited) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "statusd: sides that do not answer: %s\n", strings.Join(limited[:min(len(limited), maxProblems)], ", "))
		unknown = exitError(exitUnknown)
	}
	if drift > 0 {
		return exitError(exitFailure)
	}
	return unknown
}

func printDrift(out io.Writer, nodes []overview.Node, drift, audited int, namespace string) error {
	if drift == 0 {
		_, err := fmt.Fprintf(out, "No drift is known on %d nodes.\n", audited)
		return err
	}
	if err := driftTable(nodes, inColor(out), time.Now()).print(out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nWhich pods, evidence and what to do: kubectl exec -n %s POD -- statusd audit, or statusd audit on the node.\n", plain(namespace))
	return err
}
