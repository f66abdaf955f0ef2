package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

// explainCommand is explain with its flags.
type explainCommand struct {
	question
	output
	file string
	// until: explain again with each change until the object is Ready or has ended.
	until bool
	// patience is how long it goes on, 0 for as long as it takes.
	patience time.Duration
	// status: the exit code says whether the object is Ready.
	status bool
}

func newExplain(plugin bool) *cobra.Command {
	c := &explainCommand{question: question{plugin: plugin}}
	cmd := &cobra.Command{
		Use:   "explain ([NAMESPACE/]POD | TYPE/NAME | -f FILE)",
		Short: "Explain why a pod is in its state, since when, and what would change the state",
		Long: "Explain why a pod is in its state, since when, and what would change the state, with the end of the log of the run that failed.\n\n" +
			"The statusd of this machine is asked first: it knows probes, hooks and delivery. For pods of other nodes, explain reads\n" +
			"the pod, its warnings, its log and the lease of its node from the API server. TYPE is pod, deployment, replicaset,\n" +
			"statefulset, daemonset, job or cronjob; for a workload without pods, explain says why no pod exists. The beginning of\n" +
			"a name suffices if only one pod has that name. With -f, pods are read from a file and nothing else is asked.\n\n" +
			"--watch explains each change until the object is Ready or has succeeded (exit code 0), or has failed for good (1);\n" +
			"the exit code is 6 after an interrupt or --timeout, and 3 if the object does not exist.\n" +
			"--exit-code explains once; the exit code is 6 if the object is not Ready and has not succeeded.",
		Example: "  statusd explain web\n  statusd explain deployment/web --watch\n  statusd explain -n shop web -o yaml\n  kubectl get pod web -o yaml | statusd explain -f -",
		Args:    usage(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			err := c.run(ctx, args, cmd.InOrStdin(), cmd.OutOrStdout())
			if code := exitError(0); err == nil || errors.As(err, &code) {
				return err
			}
			return fmt.Errorf("explain: %w", err)
		},
		ValidArgsFunction: c.completePods,
	}
	c.question.addFlags(cmd)
	c.addNamespace(cmd, false)
	cmd.Flags().StringVarP(&c.file, "filename", "f", "", "read the pod, or a list of pods, from this `FILE` as YAML or JSON, \"-\" is the standard input")
	cmd.Flags().BoolVarP(&c.until, "watch", "w", false, "explain each change until the object is Ready, or has ended")
	cmd.Flags().DurationVar(&c.patience, "timeout", 0, "how long --watch goes on before it ends with exit code 6; 0: no limit")
	cmd.Flags().BoolVar(&c.status, "exit-code", false, "exit with 6 if the object is not Ready and has not succeeded")
	c.output.addFlag(cmd, "text", "json", "yaml")
	return cmd
}

// run explains one object, or the pods of a file.
func (c *explainCommand) run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	if (c.file == "") == (len(args) == 0) {
		return fmt.Errorf("want either the name of a pod or a file: %w", errUsage)
	}
	if c.file == "" {
		t, err := c.target(args)
		if err != nil {
			return err
		}
		return c.explain(ctx, t, out)
	}
	pods, err := readPods(c.file, in)
	if err != nil {
		return err
	}
	for i, pod := range pods {
		if i > 0 && c.format == "yaml" {
			if _, err := fmt.Fprintln(out, "---"); err != nil {
				return err
			}
		}
		pod.Namespace = cmp.Or(pod.Namespace, c.namespace, v1.NamespaceDefault)
		if err := c.print(out, explain.Pod(explain.Facts{Now: time.Now(), Pod: pod})); err != nil {
			return err
		}
	}
	return nil
}

func (c *explainCommand) print(out io.Writer, why explain.Explanation) error {
	if done, err := c.encoded(out, why); done {
		return err
	}
	_, err := fmt.Fprintln(out, harmless(why.Text(time.Local)))
	return err
}

// watchEvery is how often an object is looked at that is watched.
const watchEvery = time.Second

// explain explains an object once, or again with each change until there is nothing to wait for.
func (c *explainCommand) explain(ctx context.Context, t target, out io.Writer) error {
	return c.follow(ctx, out, func(ctx context.Context) (explain.Explanation, error) { return c.ask(ctx, t) })
}

// follow explains the requested object. After the first answer, a watch continues over all errors except that
// the object is gone.
func (c *explainCommand) follow(ctx context.Context, out io.Writer, ask func(context.Context) (explain.Explanation, error)) error {
	if c.until && c.patience > 0 {
		limited, cancel := context.WithTimeout(ctx, c.patience)
		defer cancel()
		ctx = limited
	}
	before := ""
	for {
		why, err := ask(ctx)
		lost := err != nil && c.until && before != "" && !apierrors.IsNotFound(err)
		if err != nil && !lost {
			if c.until && ctx.Err() != nil {
				return exitError(exitNotReady)
			}
			return err
		}
		if now := why.Outline(); !lost && now != before {
			before = now
			if err := c.print(out, why); err != nil {
				return err
			}
		}
		switch {
		case lost:
		case why.State == explain.StateReady, why.State == explain.StateSucceeded:
			return nil
		case c.until && why.Ended():
			return exitError(exitFailure)
		case !c.until && c.status:
			return exitError(exitNotReady)
		case !c.until:
			return nil
		}
		select {
		case <-ctx.Done():
			return exitError(exitNotReady)
		case <-time.After(watchEvery):
		}
	}
}

// ask returns an explanation.
func (c *explainCommand) ask(ctx context.Context, t target) (explain.Explanation, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if c.ofAPI() || t.kind != "" && t.kind != "Pod" {
		return c.ofCluster(ctx, t)
	}
	why, err := c.ofNode(ctx, t, c.named())
	if err == nil || c.named() || !apierrors.IsNotFound(err) && !errors.Is(err, errUnreachable) {
		return why, err
	}
	// The pod may be on another node.
	found, second := c.ofCluster(ctx, t)
	if errors.Is(second, errUnreachable) { // there is no API server to ask either
		return c.ofNode(ctx, t, true)
	}
	return found, second
}

// ofNode asks the node. begins: the beginning of a name suffices, which it does only if no other place may have the whole name.
func (c *explainCommand) ofNode(ctx context.Context, t target, begins bool) (explain.Explanation, error) {
	client, err := c.node(ctx)
	if err != nil {
		return explain.Explanation{}, err
	}
	defer client.Close()
	namespace := cmp.Or(t.namespace, c.inNamespace())
	detail, err := client.Pod(ctx, namespace, t.name)
	if !apierrors.IsNotFound(err) || !begins {
		return detail.Explanation.At(time.Now()), err
	}
	list, second := client.Pods(ctx, queryapi.ListOptions{Namespace: namespace})
	if second != nil {
		return explain.Explanation{}, err
	}
	name, err := meant(t.name, list.Items, func(pod *view.PodSummary) string { return pod.Name }, err)
	if err != nil {
		return explain.Explanation{}, err
	}
	detail, err = client.Pod(ctx, namespace, name)
	return detail.Explanation.At(time.Now()), err
}

func (c *explainCommand) ofCluster(ctx context.Context, t target) (explain.Explanation, error) {
	client, namespace, err := c.apiServer()
	if err != nil {
		return explain.Explanation{}, err
	}
	t.namespace = cmp.Or(t.namespace, c.namespace, namespace)
	return explainObject(ctx, client, t)
}
