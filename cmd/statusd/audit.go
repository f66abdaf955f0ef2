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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	humanize "k8s.io/apimachinery/pkg/util/duration"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

// auditCommand is audit with its flags.
type auditCommand struct {
	question
	output
	clusterQuestion
	settling bool
}

func newAudit(plugin bool) *cobra.Command {
	c := &auditCommand{question: question{plugin: plugin}}
	cmd := &cobra.Command{
		Use:   "audit [[NAMESPACE/]POD]",
		Short: "Compare what the API reports of the node with the node itself, and name a remedy for each difference",
		Long: "Compare what the API reports of the node with the node itself, and name a remedy for each difference.\n\n" +
			"The answers come from statusd observe. With the name of a pod, audit shows what the runtime, the kubelet, the API\n" +
			"and the machine report of the pod, side by side. --all-nodes asks the observers of all nodes, through the\n" +
			"API server's proxy, and shows the drift by node and kind.\n\n" +
			"The exit code is 0 without drift, 1 with drift, 4 if no statusd observe was found, and 5 if no drift was found but a\n" +
			"required source did not respond.",
		Example: "  statusd audit\n  statusd audit --all -o wide\n  statusd audit shop/web\n  kubectl statusd audit --all-nodes\n  statusd audit -o json | jq '.differences[] | select(.drift)'",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return err
			}
			if c.clusterQuestion.all {
				if len(args) > 0 {
					return fmt.Errorf("--all-nodes takes no pod: %w", errUsage)
				}
				return c.auditAll(cmd, &c.question, &c.output)
			}
			return c.question.ask(cmd, func(ctx context.Context, client *queryapi.Client) error {
				report, err := client.Audit(ctx)
				if err != nil {
					return absence(err)
				}
				if len(args) == 1 {
					return c.ofPod(ctx, cmd, client, report, args[0])
				}
				return c.ofNode(cmd, report)
			})
		},
		ValidArgsFunction: c.completePods,
	}
	c.question.addFlags(cmd)
	c.addNamespace(cmd, false)
	c.addAll(cmd)
	cmd.Flags().BoolVar(&c.settling, "all", false, "also differences that may be changes on their way")
	c.output.addFlag(cmd, "table", "wide", "json", "yaml")
	return cmd
}

func (c *auditCommand) ofNode(cmd *cobra.Command, report audit.Report) error {
	if c.namespace != "" {
		report.Differences = slices.DeleteFunc(report.Differences, func(d audit.Difference) bool { return d.Pod.Namespace != c.namespace })
	}
	out := cmd.OutOrStdout()
	if done, err := c.encoded(out, report); done {
		return cmp.Or(err, finding(cmd, report.Sides, report.Differences))
	}
	err := c.print(out, report)
	return cmp.Or(err, finding(cmd, report.Sides, report.Differences))
}

// finding is the exit code of an audit. A side that does not answer is named where programs do not read.
func finding(cmd *cobra.Command, sides map[audit.Side]audit.Answer, differences []audit.Difference) error {
	if slices.ContainsFunc(differences, func(d audit.Difference) bool { return d.Drift }) {
		return exitError(exitFailure)
	}
	silent := silentSides(sides)
	if len(sides) > 0 && len(silent) == 0 {
		return nil
	}
	who := "no side has answered yet"
	if len(silent) > 0 {
		who = strings.Join(silent, ", ") + " does not answer"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "statusd: whether what the API reports is true is not known: %s\n", harmless(who))
	return exitError(exitUnknown)
}

// silentSides are the names of the sides that do not answer, in the order in which sides are shown.
func silentSides(sides map[audit.Side]audit.Answer) (names []string) {
	for _, side := range sortedSides(sides) {
		if !sides[side].Known() {
			names = append(names, string(side))
		}
	}
	return names
}

// sideOrder is the order from the running containers to their report.
var sideOrder = []audit.Side{audit.SideRuntime, audit.SideKubelet, audit.SideAPI, audit.SideMachine}

func sortedSides(sides map[audit.Side]audit.Answer) []audit.Side {
	place := func(s audit.Side) int {
		if i := slices.Index(sideOrder, s); i >= 0 {
			return i
		}
		return len(sideOrder)
	}
	return slices.SortedFunc(maps.Keys(sides), func(a, b audit.Side) int { return cmp.Or(place(a)-place(b), strings.Compare(string(a), string(b))) })
}

// print prints the sides that do not answer, the differences, and what to do about them.
func (c *auditCommand) print(out io.Writer, report audit.Report) error {
	now := time.Now()
	colors := inColor(out)
	if err := printSilent(out, report.Sides, colors, now); err != nil {
		return err
	}
	if report.NodeMissing {
		if _, err := fmt.Fprintf(out, "The API has no node %s. If this is not the name of the node, set nodeName.\n\n", plain(report.Node)); err != nil {
			return err
		}
	}
	shown := slices.DeleteFunc(slices.Clone(report.Differences), func(d audit.Difference) bool { return !d.Drift && !c.settling })
	if len(shown) == 0 {
		_, err := fmt.Fprintln(out, noDrift(report, c.namespace))
		return err
	}
	t := &table{colors: colors}
	names := []string{"KIND", "POD", "CONTAINER", "SINCE", "CERTAINTY", "WHAT"}
	if c.settling {
		names = append([]string{"STATE"}, names...)
	}
	if c.format == "wide" {
		names = append(names, "SUBJECT", "SEEN", "EVIDENCE")
	}
	t.header(names...)
	for i := range shown {
		t.add(c.cells(&shown[i], now)...)
	}
	if err := t.print(out); err != nil {
		return err
	}
	return printDo(out, shown)
}

func noDrift(report audit.Report, namespace string) string {
	where := "node " + plain(report.Node)
	if namespace != "" {
		where = "namespace " + plain(namespace) + " on " + where
	}
	var known []string
	for _, side := range sortedSides(report.Sides) {
		if report.Sides[side].Known() {
			known = append(known, plain(string(side)))
		}
	}
	if len(known) == 0 {
		return "Nothing is known of " + where + ": no side answers."
	}
	return "No drift: what the API reports of " + where + " agrees with " + strings.Join(known, ", ") + "."
}

func (c *auditCommand) cells(d *audit.Difference, now time.Time) []cell {
	cells := []cell{
		{string(d.Kind), driftColor(d)}, {podOf(d.Pod), ""}, {d.Container, ""}, {ago(d.Since, now), ""}, {string(d.Certainty), ""}, {d.Message, ""},
	}
	if c.settling {
		state := "settling"
		if d.Drift {
			state = "drift"
		}
		cells = append([]cell{{state, driftColor(d)}}, cells...)
	}
	if c.format == "wide" {
		var evidence []string
		for _, e := range d.Evidence {
			evidence = append(evidence, string(e.Side)+": "+e.Text)
		}
		cells = append(cells, cell{d.Subject, ""}, cell{ago(d.Seen, now), ""}, cell{strings.Join(evidence, "; "), ""})
	}
	return cells
}

func driftColor(d *audit.Difference) string {
	if d.Drift {
		return red
	}
	return faint
}

// printSilent prints each side that does not answer.
func printSilent(out io.Writer, sides map[audit.Side]audit.Answer, colors bool, now time.Time) error {
	var b strings.Builder
	for _, side := range sortedSides(sides) {
		if a := sides[side]; !a.Known() {
			b.WriteString(paint(cell{plain(silence(side, a, now)), yellow}, colors) + "\n")
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// silence says since when a side does not answer, and why.
func silence(side audit.Side, a audit.Answer, now time.Time) string {
	text := "The " + sideName(side) + " does not answer"
	switch {
	case !a.Silent.IsZero():
		text += " for " + ago(a.Silent, now)
	case a.At.IsZero():
		text += " yet"
	}
	if a.Err != "" {
		text += ": " + a.Err
	}
	if a.At.IsZero() {
		return text + ". Its state is unknown."
	}
	return text + ". Its last answer is shown."
}

func sideName(side audit.Side) string {
	if side == audit.SideAPI {
		return "API server"
	}
	return string(side)
}

// printDo prints what to do, once for the differences that need the same.
func printDo(out io.Writer, differences []audit.Difference) error {
	var order []string
	about := map[string][]string{}
	for i := range differences {
		d := &differences[i]
		if d.Do == "" {
			continue
		}
		if about[d.Do] == nil {
			order = append(order, d.Do)
		}
		name := strings.TrimSpace(podOf(d.Pod) + " " + d.Container)
		if !slices.Contains(about[d.Do], name) {
			about[d.Do] = append(about[d.Do], name)
		}
	}
	if len(order) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nWhat to do:\n")
	for _, do := range order {
		fmt.Fprintf(&b, "  %s: %s\n", plain(strings.Join(about[do], ", ")), plain(do))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// podOf names what a difference is about.
func podOf(r audit.Ref) string {
	switch {
	case r.Name != "":
		return r.Namespace + "/" + r.Name
	case r.UID != "":
		return string(r.UID)
	}
	return "(node)"
}

// ago is how long ago something was, as kubectl says it.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return humanize.HumanDuration(max(0, now.Sub(t)))
}

// ofPod prints what each side says of one pod.
func (c *auditCommand) ofPod(ctx context.Context, cmd *cobra.Command, client *queryapi.Client, report audit.Report, argument string) error {
	namespace, name := c.podName(argument)
	detail, err := client.Pod(ctx, namespace, name)
	if apierrors.IsNotFound(err) { // the node may not list it, and the runtime still have it
		detail = view.PodDetail{}
		for _, d := range report.Differences {
			if d.Pod.Namespace == namespace && d.Pod.Name == name {
				detail.Differences = append(detail.Differences, d)
			}
		}
		if len(detail.Differences) > 0 {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	whole := struct {
		Sides       map[audit.Side]audit.Answer `json:"sides"`
		Pictures    []audit.Picture             `json:"pictures"`
		Differences []audit.Difference          `json:"differences"`
	}{report.Sides, append([]audit.Picture{}, detail.Pictures...), append([]audit.Difference{}, detail.Differences...)}
	out := cmd.OutOrStdout()
	done, err := c.encoded(out, whole)
	if !done {
		err = c.printPod(out, namespace+"/"+name, report.Sides, whole.Pictures, whole.Differences)
	}
	return cmp.Or(err, finding(cmd, report.Sides, detail.Differences))
}
