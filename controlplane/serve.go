package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/controlplane/accounts"
	"github.com/statusd/statusd/controlplane/datadir"
	"github.com/statusd/statusd/controlplane/pki"
)

// stopTimeout bounds a clean exit. What is not done by then is requests that hang; etcd is closed
// properly all the same.
const stopTimeout = 5 * time.Second

type serveOptions struct {
	dataDir     string
	port        int
	logToStderr bool
	verbosity   int
}

func parseServe(args []string) (serveOptions, error) {
	var o serveOptions
	flags := pflag.NewFlagSet("controlplane", pflag.ContinueOnError)
	flags.StringVar(&o.dataDir, "data-dir", "", "`directory` for certificates, etcd and the log; made if missing (required)")
	flags.IntVar(&o.port, "port", 0, "loopback `port` to serve at; 0: where this directory was served before, else a free one")
	flags.BoolVar(&o.logToStderr, "log-to-stderr", false, "log to standard error instead of DIRECTORY/controlplane.log")
	flags.IntVarP(&o.verbosity, "v", "v", 1, "log verbosity of the API server")
	flags.Usage = func() {
		fmt.Printf("A Kubernetes API server with its etcd in one process, on the loopback interface.\n\n"+
			"  controlplane --data-dir D [--port P]\n"+
			"  controlplane kubeconfig --data-dir D (--admin | --node NAME) [--out FILE]\n\n%s", flags.FlagUsages())
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; the only sub-command is kubeconfig", flags.Arg(0))
	case o.dataDir == "":
		return o, errors.New("--data-dir is required")
	case o.port < 0 || o.port > 65535:
		return o, fmt.Errorf("--port %d: want 0 to 65535", o.port)
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
	return serveAPI(ctx, dir, authority, listener, etcd.Err(), o.verbosity)
}

// serveAPI runs the API server and announces it. It returns when ctx ends and the server is down,
// or as soon as the server or its etcd fails. If ctx ends before the server is ready it is left to
// the end of the process: kube-apiserver takes a stop during its start for a fatal error.
func serveAPI(ctx context.Context, dir *datadir.Dir, authority *pki.Authority, listener net.Listener, etcdFailed <-chan error, verbosity int) error {
	stop := make(chan struct{})
	apiCtx := wait.ContextForChannel(stop)
	apiserver, err := newAPIServer(apiCtx, authority, listener, verbosity)
	if err != nil {
		return err
	}
	served := make(chan error, 1) // buffered: after the stop timeout there is no reader
	go func() { served <- apiserver.run(apiCtx) }()

	// The keeper retries until the server answers, and ends with the process or before the server.
	keeper, err := newKeeper(authority, listener)
	if err != nil {
		return err
	}
	go func() {
		if err := keeper.Run(ctx); err != nil {
			log.Print(err) // a handler could not be added: the namespaces stay empty, and announce waits
		}
	}()

	announced := make(chan error, 1) // buffered: if the server fails first there is no reader
	go func() { announced <- announce(ctx, dir, authority, listener) }()
	defer dir.ClearAddress()

	select {
	case err := <-announced:
		if err != nil {
			return err
		}
	case err := <-etcdFailed:
		return fmt.Errorf("etcd failed: %w (see %s)", err, dir.Log())
	case err := <-served:
		return fmt.Errorf("API server failed: %w (see %s)", err, dir.Log())
	}

	select {
	case <-ctx.Done():
		close(stop)
		select {
		case <-served:
		case <-time.After(stopTimeout):
		}
		return nil
	case err := <-etcdFailed:
		return fmt.Errorf("etcd failed: %w (see %s)", err, dir.Log())
	case err := <-served:
		return fmt.Errorf("API server failed: %w (see %s)", err, dir.Log())
	}
}

// newKeeper makes what gives each namespace its service account and root certificate.
func newKeeper(authority *pki.Authority, listener net.Listener) (*accounts.Keeper, error) {
	kubeconfig, err := authority.AdminKubeconfig(address(port(listener)))
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return accounts.New(client, authority.Certificate()), nil
}

// announce waits until the server is ready, then says where: in two files and on standard output.
func announce(ctx context.Context, dir *datadir.Dir, authority *pki.Authority, listener net.Listener) error {
	server := address(port(listener))
	if err := awaitReady(ctx, server, authority); err != nil {
		return err
	}
	kubeconfig, err := authority.AdminKubeconfig(server)
	if err != nil {
		return err
	}
	if err := datadir.WriteFile(dir.AdminKubeconfig(), kubeconfig, 0o600); err != nil {
		return err
	}
	if err := dir.SetAddress(server); err != nil {
		return err
	}
	fmt.Printf("controlplane: ready at %s, kubeconfig %s\n", server, dir.AdminKubeconfig())
	return nil
}
