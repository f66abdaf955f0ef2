package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/explain/apifacts"
)

// maxPodFile is the largest file that explain reads. The API server stores no larger object.
const maxPodFile = 3 << 20

// explainOptions are the flags of explain.
type explainOptions struct {
	kubeconfig, namespace, file, output string
	timeout                             time.Duration
}

func newExplain() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain ([NAMESPACE/]POD | -f FILE)",
		Short: "Say why a pod is in its state, since when, and what would change it",
		Long: "Say why a pod is in its state, since when, and what would change it.\n\n" +
			"It reads the pod, its warnings and its node's lease from the API server, or only the pod\n" +
			"from a file, and works for the pods of any node.",
		Example: "  statusd explain web\n  statusd explain -n shop web -o yaml\n  kubectl get pod web -o yaml | statusd explain -f -",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			facts, err := o.facts(cmd.Context(), args, cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("explain: %w", err)
			}
			return o.print(cmd.OutOrStdout(), explain.Pod(facts))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `FILE`; by default what kubectl uses")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the pod; by default that of the kubeconfig")
	flags.StringVarP(&o.file, "filename", "f", "", "read the pod from this `FILE` as YAML or JSON, \"-\" is the standard input")
	flags.StringVarP(&o.output, "output", "o", "text", "text, json or yaml")
	flags.DurationVar(&o.timeout, "request-timeout", 15*time.Second, "how long to wait for the API server")
	return cmd
}

func (o explainOptions) facts(ctx context.Context, args []string, in io.Reader) (explain.Facts, error) {
	switch {
	case o.output != "text" && o.output != "json" && o.output != "yaml":
		return explain.Facts{}, fmt.Errorf("output %q is not known, want text, json or yaml: %w", o.output, errUsage)
	case (o.file == "") == (len(args) == 0):
		return explain.Facts{}, fmt.Errorf("want either the name of a pod or a file: %w", errUsage)
	case o.file != "":
		pod, err := readPod(o.file, in)
		return explain.Facts{Now: time.Now(), Pod: pod}, err
	}
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(o.rules(), &clientcmd.ConfigOverrides{})
	connection, err := config.ClientConfig()
	if err != nil {
		return explain.Facts{}, err
	}
	client, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return explain.Facts{}, err
	}
	namespace, name := o.namespace, args[0]
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	if namespace == "" {
		if namespace, _, err = config.Namespace(); err != nil {
			return explain.Facts{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return apifacts.Collect(ctx, client, namespace, name, time.Now())
}

func (o explainOptions) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return rules
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

func (o explainOptions) print(out io.Writer, e explain.Explanation) error {
	var text []byte
	var err error
	switch o.output {
	case "json":
		text, err = json.MarshalIndent(e, "", "  ")
	case "yaml":
		text, err = yaml.Marshal(e)
	default:
		text = []byte(e.Sentence(time.Local))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.TrimSuffix(string(text), "\n"))
	return err
}
