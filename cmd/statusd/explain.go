package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/explain/apifacts"
)

// maxPodFile is the largest file that explain reads. The API server stores no larger object.
const maxPodFile = 3 << 20

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
			"the pods of any node. With -f it reads only the pod, from a file.",
		Example: "  statusd explain web\n  statusd explain -n shop web -o yaml\n  kubectl get pod web -o yaml | statusd explain -f -",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			why, sentence, err := c.explain(cmd.Context(), args, cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("explain: %w", err)
			}
			out := cmd.OutOrStdout()
			if done, err := c.encoded(out, why); done {
				return err
			}
			_, err = fmt.Fprintln(out, plain(sentence))
			return err
		},
		ValidArgsFunction: c.completePods,
	}
	c.question.addFlags(cmd)
	c.addNamespace(cmd, false)
	cmd.Flags().StringVarP(&c.file, "filename", "f", "", "read the pod from this `FILE` as YAML or JSON, \"-\" is the standard input")
	c.output.addFlag(cmd, "text", "json", "yaml")
	return cmd
}

// explain returns an explanation, and how it reads.
func (c *explainCommand) explain(ctx context.Context, args []string, in io.Reader) (explain.Explanation, string, error) {
	if err := c.check(); err != nil {
		return explain.Explanation{}, "", err
	}
	if (c.file == "") == (len(args) == 0) {
		return explain.Explanation{}, "", fmt.Errorf("want either the name of a pod or a file: %w", errUsage)
	}
	if c.file != "" {
		pod, err := readPod(c.file, in)
		if err != nil {
			return explain.Explanation{}, "", err
		}
		why := explain.Pod(explain.Facts{Now: time.Now(), Pod: pod})
		return why, why.Sentence(time.Local), nil
	}
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

// readPod reads one pod.
func readPod(file string, in io.Reader) (*v1.Pod, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxPodFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxPodFile:
		return nil, fmt.Errorf("%s: more than %d bytes: no pod is that large", file, maxPodFile)
	}
	pod := &v1.Pod{}
	if err := yaml.Unmarshal(data, pod); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if pod.Kind != "Pod" || pod.APIVersion != "v1" {
		return nil, fmt.Errorf("%s: want one object of kind Pod, apiVersion v1, got kind %q, apiVersion %q", file, pod.Kind, pod.APIVersion)
	}
	if pod.Name == "" {
		return nil, fmt.Errorf("%s: the pod has no metadata.name", file)
	}
	return pod, nil
}
