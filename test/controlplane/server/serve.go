package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
	"github.com/statusd/statusd/test/controlplane/server/pki"
)

// stopTimeout bounds a clean exit. Only hanging requests last longer; etcd is closed properly all
// the same.
const stopTimeout = 5 * time.Second

type serveOptions struct {
	dataDir     string
	port        int
	logToStderr bool
	verbosity   int
	controllers bool
	nodeGrace   time.Duration
}

func parseServe(args []string) (serveOptions, error) {
	var o serveOptions
	flags := pflag.NewFlagSet("controlplane", pflag.ContinueOnError)
	flags.StringVar(&o.dataDir, "data-dir", "", "`directory` for certificates, etcd and the log; made if missing (required)")
	flags.IntVar(&o.port, "port", 0, "loopback `port` to serve at; 0: where this directory was served before, else a free one")
	flags.BoolVar(&o.logToStderr, "log-to-stderr", false, "log to standard error instead of DIRECTORY/controlplane.log")
	flags.IntVarP(&o.verbosity, "v", "v", 1, "log verbosity of the API server")
	flags.BoolVar(&o.controllers, "controllers", false, "run kube-scheduler and those of kube-controller-manager's controllers that meet a node, too")
	flags.DurationVar(&o.nodeGrace, "node-monitor-grace-period", 0, "with --controllers: how long a node may be silent before it counts as unreachable; 0: the default of kube-controller-manager")
	flags.Usage = func() {
		fmt.Printf("A Kubernetes API server with its etcd in one process, on the loopback interface.\n\n"+
			"  controlplane --data-dir D [--port P] [--controllers]\n"+
			"  controlplane kubeconfig --data-dir D (--admin | --node NAME) [--out FILE]\n"+
			"  controlplane certificate --data-dir D --name NAME --out PREFIX\n\n%s", flags.FlagUsages())
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; the sub-commands are kubeconfig and certificate", flags.Arg(0))
	case o.dataDir == "":
		return o, errors.New("--data-dir is required")
	case o.port < 0 || o.port > 65535:
		return o, fmt.Errorf("--port %d: want 0 to 65535", o.port)
	case o.nodeGrace < 0 || o.nodeGrace > 0 && !o.controllers:
		return o, errors.New("--node-monitor-grace-period: want a positive duration, and --controllers")
	}
	return o, nil
}

// serve blocks until ctx ends or a part fails.
func serve(ctx context.Context, o serveOptions) error {
	dir, err := datadir.Open(o.dataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.ClearAddress(); err != nil {
		return err
	}
	listener, err := listen(dir, o.port)
	if err != nil {
		return err
	}
	defer listener.Close() // the API server closes it first, if it got that far
	authority, err := pki.Ensure(dir.PKI(), time.Now())
	if err != nil {
		return err
	}
	if !o.logToStderr {
		if err := redirectStderr(dir.Log()); err != nil {
			return err
		}
	}
	etcd, err := startEtcd(ctx, dir)
	if err != nil {
		return err
	}
	defer stopEtcd(etcd)
	return serveAPI(ctx, cluster{dir: dir, authority: authority, listener: listener, options: o}, etcd.Err())
}

// cluster is what the parts of a control plane are made from.
type cluster struct {
	dir       *datadir.Dir
	authority *pki.Authority
	listener  net.Listener
	options   serveOptions
}

func (c cluster) server() string { return address(port(c.listener)) }

// serveAPI runs the API server and what works on its objects, and announces it. serveAPI returns when ctx
// ends and the server is down, or as soon as a part fails. If ctx ends before the server is ready it is left to
// the end of the process: kube-apiserver takes a stop during its start for a fatal error.
func serveAPI(ctx context.Context, c cluster, etcdFailed <-chan error) error {
	stop := make(chan struct{})
	apiCtx := wait.ContextForChannel(stop)
	apiserver, err := newAPIServer(apiCtx, c)
	if err != nil {
		return err
	}
	served := make(chan error, 1) // buffered: after the stop timeout there is no reader
	go func() { served <- apiserver.run(apiCtx) }()

	companions, err := startCompanions(ctx, c)
	if err != nil {
		return err
	}
	announced := make(chan error, 1) // buffered: if the server fails first there is no reader
	go func() { announced <- announce(ctx, c) }()
	defer c.dir.ClearAddress()

	failed := func(part string, err error) error {
		return fmt.Errorf("%s failed: %w (see %s)", part, err, c.dir.Log())
	}
	for {
		select {
		case err := <-announced:
			if err != nil {
				return err
			}
			announced = nil // ready; from now on the end of ctx is a clean stop
		case err := <-etcdFailed:
			return failed("etcd", err)
		case err := <-served:
			return failed("API server", err)
		case err := <-companions.failed:
			return failed("control plane", err)
		case <-onceAnnounced(announced, ctx):
			deadline, cancel := context.WithTimeout(context.Background(), stopTimeout)
			defer cancel()
			companions.await(deadline) // their last requests need the server
			close(stop)
			select {
			case <-served:
			case <-deadline.Done():
			}
			return nil
		}
	}
}

// onceAnnounced is the end of ctx once the server has been announced, and nil before.
func onceAnnounced(announced <-chan error, ctx context.Context) <-chan struct{} {
	if announced != nil {
		return nil
	}
	return ctx.Done()
}

// announce waits until the server is ready, then says where: in two files and on standard output.
func announce(ctx context.Context, c cluster) error {
	server := c.server()
	if err := awaitReady(ctx, server, c.authority, readyPaths); err != nil {
		return err
	}
	kubeconfig, err := c.authority.AdminKubeconfig(server)
	if err != nil {
		return err
	}
	if err := datadir.WriteFile(c.dir.AdminKubeconfig(), kubeconfig, 0o600); err != nil {
		return err
	}
	if err := c.dir.SetAddress(server); err != nil {
		return err
	}
	fmt.Printf("controlplane: ready at %s, kubeconfig %s\n", server, c.dir.AdminKubeconfig())
	return nil
}
