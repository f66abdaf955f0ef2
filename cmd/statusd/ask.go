package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/internal/apifacts"
	"github.com/statusd/statusd/internal/observer"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/run"
)

// errUnreachable: there is nothing to ask.
var errUnreachable = errors.New("nothing to ask")

// question is what the commands that ask have in common: whom they ask, about which namespace.
type question struct {
	server, socket, kubeconfig string
	// cluster has the flags that choose what of a kubeconfig is used, as kubectl has them.
	cluster   clientcmd.ConfigOverrides
	namespace string
	all       bool
	timeout   time.Duration
	// plugin: this is a plugin of kubectl, whose users ask about a cluster rather than this machine.
	plugin bool
}

func (q *question) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&q.server, "server", "", "ask the statusd at this `ADDRESS`, such as http://127.0.0.1:10265")
	flags.StringVar(&q.socket, "socket", "", "ask the statusd that listens on this Unix socket; by default the socket of statusd run ("+defaultPlaces()[0].socket+
		") or of statusd observe ("+defaultPlaces()[1].socket+")")
	flags.StringVar(&q.kubeconfig, "kubeconfig", "", "ask the API server of this kubeconfig `FILE`")
	flags.StringVar(&q.cluster.CurrentContext, "context", "", "ask the API server of this `CONTEXT` of the kubeconfig")
	flags.StringVar(&q.cluster.Context.Cluster, "cluster", "", "ask this `CLUSTER` of the kubeconfig")
	flags.StringVar(&q.cluster.Context.AuthInfo, "user", "", "ask as this `USER` of the kubeconfig")
	flags.StringVar(&q.cluster.AuthInfo.Impersonate, "as", "", "ask the API server as this `USER`, whom you may impersonate")
	flags.StringArrayVar(&q.cluster.AuthInfo.ImpersonateGroups, "as-group", nil, "ask the API server as a member of this `GROUP`")
	flags.DurationVar(&q.timeout, "request-timeout", 15*time.Second, "how long to wait for an answer")
	cmd.MarkFlagsMutuallyExclusive("server", "socket", "kubeconfig")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { // before cobra does, whose error says nothing of usage
		if err := cmd.ValidateFlagGroups(); err != nil {
			return flagError(cmd, err)
		}
		return nil
	}
}

func (q *question) addNamespace(cmd *cobra.Command, all bool) {
	flags := cmd.Flags()
	flags.StringVarP(&q.namespace, "namespace", "n", "", "namespace; by default the namespace of the kubeconfig, or \"default\"")
	if all {
		flags.BoolVarP(&q.all, "all-namespaces", "A", false, "pods of all namespaces")
		cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	}
	_ = cmd.RegisterFlagCompletionFunc("namespace", q.completeNamespaces) // fails only if there is no such flag
}

// place is where a statusd of this machine answers.
type place struct{ socket, server string }

// defaultPlaces are the places of statusd run and of statusd observe.
func defaultPlaces() []place {
	node, beside := run.Default(), observer.Default()
	return []place{
		{node.QuerySocketPath(), "http://" + node.HealthzBindAddress},
		{beside.QuerySocketPath(), "http://" + beside.HealthzBindAddress},
	}
}

// node returns a client of this machine's statusd, or of the server that the flags name. If neither
// can be reached, the error is errUnreachable.
func (q *question) node(ctx context.Context) (*queryapi.Client, error) {
	switch {
	case q.ofAPI():
		return nil, fmt.Errorf("%w: --kubeconfig or --context name an API server, and this is known by a node only", errUnreachable)
	case q.server != "":
		address := q.server
		if !strings.Contains(address, "://") { // as healthzBindAddress has it
			address = "http://" + address
		}
		client, err := queryapi.NewClient(address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, errUsage)
		}
		if err := q.reach(ctx, client); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errUnreachable, q.server, bare(err))
		}
		return client, nil
	case q.socket != "":
		client := queryapi.NewSocketClient(q.socket)
		if err := q.reach(ctx, client); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errUnreachable, q.socket, bare(err))
		}
		return client, nil
	}
	var problems []string
	for _, p := range defaultPlaces() {
		client := queryapi.NewSocketClient(p.socket)
		first := q.reach(ctx, client)
		if first == nil {
			return client, nil
		}
		client, err := queryapi.NewClient(p.server)
		if err != nil {
			return nil, err
		}
		second := q.reach(ctx, client)
		if second == nil {
			return client, nil
		}
		problems = append(problems, fmt.Sprintf("%s: %v; %s: %v", p.socket, bare(first), p.server, bare(second)))
	}
	return nil, fmt.Errorf("%w: no statusd answers on this machine (%s); name one with --server or --socket", errUnreachable, strings.Join(problems, "; "))
}

// ask runs something with a client of the node.
func (q *question) ask(cmd *cobra.Command, do func(context.Context, *queryapi.Client) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), q.timeout)
	defer cancel()
	client, err := q.node(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(ctx, client)
}

// reach asks for the smallest answer.
func (q *question) reach(ctx context.Context, client *queryapi.Client) error {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	if _, err := client.Pods(ctx, queryapi.ListOptions{State: "Unscheduled"}); err != nil {
		client.Close()
		return err
	}
	return nil
}

// absence turns a node's "not found" into errUnreachable: the node has no such data.
func absence(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s", errUnreachable, err.Error())
	}
	return err
}

// bare is the innermost known cause of an error, which says it in few words.
func bare(err error) error {
	for _, known := range []error{syscall.ECONNREFUSED, syscall.EACCES, fs.ErrPermission, fs.ErrNotExist} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// apiServer returns a client of the API server, and the namespace of the kubeconfig.
func (q *question) apiServer() (kubernetes.Interface, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = q.kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &q.cluster)
	connection, err := config.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", fmt.Errorf("%w: there is no kubeconfig; set KUBECONFIG, or name a file with --kubeconfig", errUnreachable)
	}
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, "", err
	}
	connection.UserAgent = userAgent("ask")
	connection.QPS = -1 // a command asks one question at a time, or overview.InFlight of them
	client, err := kubernetes.NewForConfig(connection)
	return client, namespace, err
}

// userAgent names a command and its version to the API server.
func userAgent(command string) string { return "statusd-" + command + "/" + version() }

// ofAPI reports whether a flag says which API server to ask.
func (q *question) ofAPI() bool {
	c := &q.cluster
	return q.kubeconfig != "" || c.CurrentContext != "" || c.Context.Cluster != "" || c.Context.AuthInfo != "" || c.AuthInfo.Impersonate != ""
}

// named reports whether a flag says which statusd to ask.
func (q *question) named() bool { return q.server != "" || q.socket != "" }

// podName reads [NAMESPACE/]POD, or pod/POD as -o name prints it.
func (q *question) podName(argument string) (namespace, name string) {
	if before, after, ok := strings.Cut(argument, "/"); ok {
		if kind, _ := apifacts.Kind(before); kind == "Pod" {
			return q.inNamespace(), after
		}
		return before, after
	}
	return q.inNamespace(), argument
}

// inNamespace is the namespace of the flag, or of the kubeconfig, or the default one.
func (q *question) inNamespace() string {
	if q.all {
		return ""
	}
	if q.namespace != "" {
		return q.namespace
	}
	if q.plugin || q.ofAPI() {
		if _, namespace, err := q.apiServer(); err == nil && namespace != "" {
			return namespace
		}
	}
	return v1.NamespaceDefault
}

// isPlugin reports whether the program was started as a plugin of kubectl.
func isPlugin() bool { return filepath.Base(os.Args[0]) == pluginName }

// pluginName is what kubectl looks for when a user types kubectl statusd.
const pluginName = "kubectl-statusd"
