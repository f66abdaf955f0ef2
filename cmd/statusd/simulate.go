package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/internal/fleetpage"
	"github.com/statusd/statusd/internal/localhost"
	"github.com/statusd/statusd/internal/simulate"
	"github.com/statusd/statusd/node/fleet"
)

// simulation is what the flags of statusd fleet say.
type simulation struct {
	kubeconfig, prefix, podsAs, script, metrics, page string
	nodes                                             int
	seed                                              int64
}

func newFleet() *cobra.Command {
	f := &simulation{}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Simulate many nodes in one process, for tests of schedulers, controllers and operators",
		Long: "Simulate many nodes in one process, for tests of schedulers, controllers and operators. The pods run in name only; their statuses\n" +
			"follow the kubelet's rules. A script (YAML) says which pods start slowly, flap, exit, crash or are evicted, and which nodes\n" +
			"are silent or not ready when. docs/use/fleet.md has its fields.\n\n" +
			"The nodes stay in the API when the command ends; kubectl delete nodes -l statusd/simulated=true removes them. Use a test cluster:\n" +
			"the scheduler places ordinary pods on simulated nodes.",
		Example: "  statusd fleet --kubeconfig admin.conf --nodes 1000\n  statusd fleet --nodes 50 --pods-as crashing\n  statusd fleet --nodes 100 --script outage.yaml",
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", os.Getenv(clientcmd.RecommendedConfigPathEnvVar), "the `FILE` with the credentials; by default the file that KUBECONFIG names")
	flags.IntVar(&f.nodes, "nodes", 10, "how many nodes")
	flags.StringVar(&f.prefix, "prefix", "simulated-", "prefix of the names of the nodes")
	flags.StringVar(&f.podsAs, "pods-as", "running", "behavior of pods that no rule of the script matches: "+strings.Join(simulate.Names(), ", "))
	flags.StringVar(&f.script, "script", "", "the script `FILE`: what happens to pods and nodes")
	flags.StringVar(&f.metrics, "metrics", "", "the `ADDRESS` to serve metrics at, such as 127.0.0.1:9100; empty: nowhere")
	flags.StringVar(&f.page, "page", "", "the loopback `ADDRESS` to serve the page of the nodes at, such as 127.0.0.1:9101; empty: nowhere")
	flags.Int64Var(&f.seed, "seed", 1, "decides which pods and nodes the shares of the script are")
	_ = cmd.RegisterFlagCompletionFunc("pods-as", cobra.FixedCompletions(simulate.Names(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

func (f *simulation) run(cmd *cobra.Command) error {
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	registry := prometheus.NewRegistry()
	s, err := f.simulation(logger, registry)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	serve := func(what, address string, handler http.Handler) {
		server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		go func() {
			if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
				logger.Error(what+" not served", "err", err)
				stop()
			}
		}()
		context.AfterFunc(ctx, func() { _ = server.Close() })
	}
	if f.metrics != "" {
		serve("metrics", f.metrics, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	}
	if f.page != "" {
		page := fleetpage.New(s.Fleet(), version(), simulate.RuntimeVersion)
		serve("page", f.page, page.Handler())
		go page.Run(ctx)
	}
	logger.Info("simulation begins", "nodes", f.nodes, "first", fmt.Sprint(f.prefix, 0))
	return s.Run(ctx)
}

// simulation makes what the flags say.
func (f *simulation) simulation(logger *slog.Logger, registry *prometheus.Registry) (*simulate.Simulation, error) {
	otherwise, err := simulate.As(f.podsAs)
	if err != nil {
		return nil, fmt.Errorf("--pods-as: %w: %w", err, errUsage)
	}
	if f.nodes < 1 || f.nodes > 20000 {
		return nil, fmt.Errorf("--nodes is %d: want 1 to 20000: %w", f.nodes, errUsage)
	}
	if f.page != "" && !localhost.IsLoopback(f.page) {
		return nil, fmt.Errorf("--page is %q: want a loopback address such as 127.0.0.1:9101: %w", f.page, errUsage)
	}
	script := &simulate.Script{}
	if f.script != "" {
		data, err := os.ReadFile(f.script)
		if err != nil {
			return nil, fmt.Errorf("--script: %w", err)
		}
		if script, err = simulate.Parse(data); err != nil {
			return nil, fmt.Errorf("%s: %w", f.script, err)
		}
	}
	if script.Nodes.Labels == nil {
		script.Nodes.Labels = map[string]string{}
	}
	script.Nodes.Labels["statusd/simulated"] = "true"
	if f.kubeconfig == "" {
		return nil, fmt.Errorf("no kubeconfig: set --kubeconfig or KUBECONFIG: %w", errUsage)
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	config.UserAgent = userAgent("fleet")
	client, leases, err := fleet.Clients(config)
	if err != nil {
		return nil, err
	}
	return simulate.New(simulate.Options{
		Client: client, Leases: leases, Nodes: f.nodes, Prefix: f.prefix, Script: script, Otherwise: otherwise, Seed: f.seed, Version: version(), Logger: logger, Registerer: registry,
	})
}
