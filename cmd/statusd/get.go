package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/apifacts"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

func newGet(plugin bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get", Short: "Show the pods of a node, or the node",
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("specify what to get: get pods or get node: %w", errUsage)
		},
	}
	cmd.AddCommand(newGetPods(plugin), newGetNode(plugin))
	return cmd
}

// podsCommand is get pods with its flags.
type podsCommand struct {
	question
	output
	state string
	gone  bool
}

func newGetPods(plugin bool) *cobra.Command {
	c := &podsCommand{question: question{plugin: plugin}}
	cmd := &cobra.Command{
		Use: "pods [NAME…]", Aliases: []string{"pod", "po"},
		Short: "Show pods: state, restarts, and how far the API server knows them",
		Long: "Show pods: state, restarts, and how far the API server knows them.\n\n" +
			"The answers come from the statusd of this machine. As a plugin of kubectl, the command asks the API server instead,\n" +
			"unless --server or --socket is given; the API server knows neither probes nor delivery.",
		Example: "  statusd get pods -A\n  statusd get pods --state NotReady -o wide\n  statusd get pod web -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), c.timeout)
			defer cancel()
			if len(args) > 0 {
				return c.some(ctx, cmd, args)
			}
			return c.list(ctx, cmd)
		},
		ValidArgsFunction: c.completePods,
	}
	c.question.addFlags(cmd)
	c.addNamespace(cmd, true)
	cmd.Flags().StringVar(&c.state, "state", "", "only pods in this `STATE`, such as NotReady")
	cmd.Flags().BoolVar(&c.gone, "gone", false, "also deleted pods whose history is still kept")
	c.output.addFlag(cmd, "table", "wide", "json", "yaml", "name")
	return cmd
}

// list prints the pods that the flags select.
func (c *podsCommand) list(ctx context.Context, cmd *cobra.Command) error {
	list, err := c.pods(ctx, cmd)
	if err != nil {
		return err
	}
	if len(list.Items) == 0 && c.format != "json" && c.format != "yaml" {
		hint := ""
		if !c.all {
			hint = " in namespace " + c.inNamespace() + "; -A shows the pods of all namespaces"
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "No pods found%s.\n", hint)
		return nil
	}
	return c.print(cmd.OutOrStdout(), list, list.Items)
}

// some prints pods by name.
func (c *podsCommand) some(ctx context.Context, cmd *cobra.Command, names []string) error {
	if c.plugin && !c.named() || c.ofAPI() {
		return c.someOfCluster(ctx, cmd, names)
	}
	client, err := c.node(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	var details []view.PodDetail
	var rows []view.PodSummary
	for _, argument := range names {
		namespace, name := c.podName(argument)
		detail, err := client.Pod(ctx, namespace, name)
		if err != nil {
			return err
		}
		details = append(details, detail)
		rows = append(rows, detail.PodSummary)
	}
	if len(details) == 1 {
		return c.print(cmd.OutOrStdout(), details[0], rows)
	}
	return c.print(cmd.OutOrStdout(), details, rows)
}

func (c *podsCommand) someOfCluster(ctx context.Context, cmd *cobra.Command, names []string) error {
	client, _, err := c.apiServer()
	if err != nil {
		return err
	}
	var rows []view.PodSummary
	for _, argument := range names {
		namespace, name := c.podName(argument)
		facts, err := apifacts.Collect(ctx, client, namespace, name, time.Now())
		if err != nil {
			return err
		}
		row, _ := view.Summarize(view.Pod{Facts: facts}, time.Local)
		rows = append(rows, row)
	}
	if len(rows) == 1 {
		return c.print(cmd.OutOrStdout(), rows[0], rows)
	}
	return c.print(cmd.OutOrStdout(), rows, rows)
}

// pods asks the node, or the API server if that is wanted or there is no node here.
func (c *podsCommand) pods(ctx context.Context, cmd *cobra.Command) (view.PodList, error) {
	if c.plugin && !c.named() || c.ofAPI() {
		return c.podsOfCluster(ctx)
	}
	client, err := c.node(ctx)
	if err != nil {
		return view.PodList{}, err
	}
	defer client.Close()
	return client.Pods(ctx, queryapi.ListOptions{Namespace: c.inNamespace(), State: c.state, Gone: c.gone})
}

// podsOfCluster makes the rows of what the API server knows.
func (c *podsCommand) podsOfCluster(ctx context.Context) (view.PodList, error) {
	list := view.PodList{Items: []view.PodSummary{}}
	client, _, err := c.apiServer()
	if err != nil {
		return list, err
	}
	namespace := c.inNamespace()
	found, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return list, err
	}
	warnings := warningsOf(ctx, client, namespace)
	now := time.Now()
	for i := range found.Items {
		pod := &found.Items[i]
		facts := explain.Facts{Now: now, Pod: pod, Warnings: apifacts.FromEvents(warnings, pod), Node: explain.Node{Name: pod.Spec.NodeName}}
		row, _ := view.Summarize(view.Pod{Facts: facts}, time.Local)
		if c.state == "" || string(row.State) == c.state {
			list.Items = append(list.Items, row)
		}
	}
	return list, nil
}

// warningsOf are the warnings of a namespace. Without the right to read them explanations are
// shorter.
func warningsOf(ctx context.Context, client kubernetes.Interface, namespace string) []v1.Event {
	const limit = 1000
	list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"type": v1.EventTypeWarning}.String(), Limit: limit,
	})
	if err != nil {
		return nil
	}
	return list.Items
}

// print prints rows as a table, or what they were made of.
func (c *podsCommand) print(out io.Writer, whole any, rows []view.PodSummary) error {
	if done, err := c.encoded(out, whole); done {
		return err
	}
	if c.format == "name" {
		for _, row := range rows {
			if _, err := fmt.Fprintln(out, "pod/"+plain(row.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	return podTable(rows, c.all, c.format == "wide", inColor(out), time.Now()).print(out)
}

func podTable(rows []view.PodSummary, namespaces, wide, colors bool, now time.Time) *table {
	t := &table{colors: colors}
	names := []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE", "LAG"}
	if namespaces {
		names = append([]string{"NAMESPACE"}, names...)
	}
	found := slices.ContainsFunc(rows, func(r view.PodSummary) bool { return r.Drift > 0 || r.Alerts > 0 })
	if found {
		names = append(names, "DRIFT", "ALERTS")
	}
	if wide {
		names = append(names, "STATE", "IP", "WHY")
	}
	t.header(names...)
	for i := range rows {
		t.add(podCells(&rows[i], namespaces, found, wide, now)...)
	}
	return t
}

func podCells(row *view.PodSummary, namespaces, found, wide bool, now time.Time) []cell {
	restarts := fmt.Sprint(row.Restarts)
	if row.Restarts > 0 && row.LastRestart != nil {
		restarts += " (" + age(row.LastRestart, now) + " ago)"
	}
	cells := []cell{
		{row.Name, ""}, {fmt.Sprintf("%d/%d", row.Ready, row.Containers), ""}, {row.Status, stateColor(row.State)},
		{restarts, ""}, {age(row.Created, now), ""}, lagCell(row.Delivery),
	}
	if namespaces {
		cells = append([]cell{{row.Namespace, ""}}, cells...)
	}
	if found {
		cells = append(cells, countCell(row.Drift), countCell(row.Alerts))
	}
	if wide {
		cells = append(cells, cell{string(row.State), stateColor(row.State)}, cell{row.IP, ""}, cell{cmp.Or(row.Brief, row.Why), ""})
	}
	return cells
}

// countCell is a number of things that are wrong.
func countCell(count int) cell {
	if count == 0 {
		return cell{"-", ""}
	}
	return cell{fmt.Sprint(count), red}
}

// lagCell says how long the API server has not known the newest status.
func lagCell(f view.Freshness) cell {
	switch {
	case !f.Since.IsZero() && f.Error != "":
		return cell{fmt.Sprintf("%.0fs", f.LagSeconds), red}
	case !f.Since.IsZero():
		return cell{fmt.Sprintf("%.0fs", f.LagSeconds), yellow}
	}
	return cell{"-", ""}
}

func stateColor(state explain.State) string {
	switch state {
	case explain.StateReady, explain.StateSucceeded:
		return green
	case explain.StateStarting, explain.StateInitializing, explain.StateTerminating, explain.StateUnscheduled:
		return yellow
	}
	return red
}

func newGetNode(plugin bool) *cobra.Command {
	q := &question{plugin: plugin}
	o := &output{}
	cmd := &cobra.Command{
		Use: "node", Aliases: []string{"nodes", "no"}, Short: "Show the node: conditions, resources, delivery, problems",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return q.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				detail, err := client.Node(ctx)
				if err != nil {
					return err
				}
				return printNode(cmd.OutOrStdout(), o, detail)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.addFlags(cmd)
	o.addFlag(cmd, "table", "wide", "json", "yaml", "name")
	return cmd
}

func printNode(out io.Writer, o *output, n view.NodeDetail) error {
	if done, err := o.encoded(out, n); done {
		return err
	}
	if o.format == "name" {
		_, err := fmt.Fprintln(out, "node/"+plain(n.Name))
		return err
	}
	total, states := 0, []string{}
	for _, state := range slices.Sorted(maps.Keys(n.Pods)) {
		total += n.Pods[state]
		states = append(states, fmt.Sprintf("%d %s", n.Pods[state], state))
	}
	ready, color := "NotReady", red
	for _, c := range n.Conditions {
		if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
			ready, color = "Ready", green
		}
	}
	t := &table{colors: inColor(out)}
	t.header("NAME", "STATUS", "PODS", "UNSENT", "OLDEST", "VERSION", "RUNTIME")
	t.add(cell{n.Name, ""}, cell{ready, color}, cell{fmt.Sprint(total), ""}, cell{fmt.Sprint(n.Delivery.Pending), ""},
		cell{fmt.Sprintf("%.0fs", n.Delivery.OldestSeconds), ""}, cell{n.Version, ""}, cell{n.Runtime, ""})
	details := &table{colors: t.colors}
	for _, problem := range n.Problems {
		details.add(cell{"problem", red}, cell{problem, ""})
	}
	addFindings(details, &n, time.Now())
	if err := t.print(out); err != nil || o.format != "wide" && len(details.rows) == 0 {
		return err
	}
	if n.Load != nil && o.format == "wide" {
		details.add(cell{"load", loadColor(n.Load.Load)}, cell{fmt.Sprintf("%.0f %%, by %s", 100*n.Load.Load, n.Load.Limit), ""})
		for _, part := range n.Load.Parts {
			details.add(cell{"  " + part.Name, ""}, cell{part.Text, ""})
		}
	}
	if o.format == "wide" {
		details.add(cell{"pods", ""}, cell{strings.Join(states, ", "), ""})
		for _, name := range slices.Sorted(maps.Keys(n.Allocatable)) {
			requested, allocatable := n.Requested[name], n.Allocatable[name]
			details.add(cell{string(name), ""}, cell{cmp.Or(requested.String(), "0") + " of " + allocatable.String() + " requested", ""})
		}
		for _, c := range n.Conditions {
			details.add(cell{string(c.Type), ""}, cell{strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message), ""})
		}
	}
	return details.print(out)
}

// addFindings adds what audit, guard and rules have found wrong.
func addFindings(t *table, n *view.NodeDetail, now time.Time) {
	for _, side := range sortedSides(n.Sides) {
		if a := n.Sides[side]; !a.Known() {
			t.add(cell{"side", yellow}, cell{silence(side, a, now), ""})
		}
	}
	if n.Drift > 0 {
		t.add(cell{"drift", red}, cell{count(n.Drift, "difference") + ": statusd audit", ""})
	}
	if k := n.Kubelet; k != nil && k.Health != guard.Healthy {
		text := string(k.Health)
		for _, reason := range k.Reasons {
			text += "; " + reason.Code + ": " + reason.Message
		}
		t.add(cell{"kubelet", red}, cell{text, ""})
	}
	if n.Firing > 0 {
		t.add(cell{"alerts", red}, cell{fmt.Sprintf("%d firing: statusd alerts", n.Firing), ""})
	}
}

func loadColor(load float64) string {
	if load > 0.9 {
		return red
	}
	return ""
}

// count is a number with a noun.
func count(number int, noun string) string {
	if number != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", number, noun)
}
