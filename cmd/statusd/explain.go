package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/explain/apifacts"
)

// explainCommand is explain with its flags.
type explainCommand struct {
	question
	output
	file string
}

func newExplain(plugin bool) *cobra.Command {
	c := &explainCommand{question: question{plugin: plugin}}
	cmd := &cobra.Command{
		Use:   "explain ([NAMESPACE/]POD | -f FILE)",
		Short: "Say why a pod is in its state, since when, and what would change it",
		Long: "Say why a pod is in its state, since when, and what would change it.\n\n" +
			"It asks the statusd of this machine, which knows probes, hooks and delivery. If the pod is not\n" +
			"here, it reads the pod, its warnings and its node's lease from the API server, which works for\n" +
			"the pods of any node. With -f it reads only the pods, from a file, which may have several.",
		Example: "  statusd explain web\n  statusd explain -n shop web -o yaml\n  kubectl get pod web -o yaml | statusd explain -f -",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("explain: %w", err)
			}
			return nil
		},
		ValidArgsFunction: c.completePods,
	}
	c.question.addFlags(cmd)
	c.addNamespace(cmd, false)
	cmd.Flags().StringVarP(&c.file, "filename", "f", "", "read the pod, or a list of pods, from this `FILE` as YAML or JSON, \"-\" is the standard input")
	c.output.addFlag(cmd, "text", "json", "yaml")
	return cmd
}

// run explains one pod, or those of a file.
func (c *explainCommand) run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	if (c.file == "") == (len(args) == 0) {
		return fmt.Errorf("want either the name of a pod or a file: %w", errUsage)
	}
	if c.file == "" {
		why, sentence, err := c.ask(ctx, args)
		if err != nil {
			return err
		}
		return c.print(out, why, sentence)
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
		why := explain.Pod(explain.Facts{Now: time.Now(), Pod: pod})
		if err := c.print(out, why, why.Sentence(time.Local)); err != nil {
			return err
		}
	}
	return nil
}

func (c *explainCommand) print(out io.Writer, why explain.Explanation, sentence string) error {
	if done, err := c.encoded(out, why); done {
		return err
	}
	_, err := fmt.Fprintln(out, plain(sentence))
	return err
}

// ask returns an explanation, and how it reads.
func (c *explainCommand) ask(ctx context.Context, args []string) (explain.Explanation, string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	namespace, name := c.podName(args[0])
	if c.kubeconfig == "" {
		why, sentence, err := c.ofNode(ctx, namespace, name)
		if err == nil || c.named() {
			return why, sentence, err
		}
		if !apierrors.IsNotFound(err) && !errors.Is(err, errUnreachable) {
			return why, sentence, err
		}
		// It may be a pod of another node.
		found, sentence, second := c.ofCluster(ctx, args[0])
		if errors.Is(second, errUnreachable) {
			second = err // there is no API server to ask either
		}
		return found, sentence, second
	}
	return c.ofCluster(ctx, args[0])
}

func (c *explainCommand) ofNode(ctx context.Context, namespace, name string) (explain.Explanation, string, error) {
	client, err := c.node(ctx)
	if err != nil {
		return explain.Explanation{}, "", err
	}
	defer client.Close()
	detail, err := client.Pod(ctx, namespace, name)
	return detail.Explanation, detail.Why, err
}

func (c *explainCommand) ofCluster(ctx context.Context, argument string) (explain.Explanation, string, error) {
	client, namespace, err := c.apiServer()
	if err != nil {
		return explain.Explanation{}, "", err
	}
	if c.namespace != "" {
		namespace = c.namespace
	}
	name := argument
	if before, after, ok := strings.Cut(argument, "/"); ok {
		namespace, name = before, after
	}
	facts, err := apifacts.Collect(ctx, client, namespace, name, time.Now())
	if err != nil {
		return explain.Explanation{}, "", err
	}
	why := explain.Pod(facts)
	return why, why.Sentence(time.Local), nil
}
