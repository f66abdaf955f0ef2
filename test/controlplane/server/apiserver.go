package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/statusd/statusd/test/controlplane/server/pki"
)

const (
	serviceRange     = "10.0.0.0/24"
	frontProxyClient = "front-proxy-client"
)

// serviceAddress is what pods know the API server by: the first of serviceRange.
var serviceAddress = net.IPv4(10, 0, 0, 1)

type apiServer struct{ options options.CompletedOptions }

// newAPIServer configures kube-apiserver by the flags that operators know it by.
func newAPIServer(ctx context.Context, c cluster) (*apiServer, error) {
	args, err := apiServerArgs(c.authority, port(c.listener), c.options.verbosity)
	if err != nil {
		return nil, err
	}
	o := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, named := range o.Flags().FlagSets {
		flags.AddFlagSet(named)
	}
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("API server flags: %w", err)
	}
	o.SecureServing.Listener = c.listener

	registry := o.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return nil, fmt.Errorf("API server feature gates: %w", err)
	}
	if err := logsapi.ValidateAndApply(o.Logs, registry.FeatureGateFor(compatibility.DefaultKubeComponent)); err != nil {
		return nil, fmt.Errorf("API server log: %w", err)
	}
	// The server is its own client; its warnings to itself are useless.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	completed, err := o.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("API server options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("API server options: %w", utilerrors.NewAggregate(errs))
	}
	return &apiServer{options: completed}, nil
}

func (s *apiServer) run(ctx context.Context) error { return app.Run(ctx, s.options) }

func apiServerArgs(authority *pki.Authority, port, verbosity int) ([]string, error) {
	certificateFile, keyFile, err := authority.ServerFiles(serviceAddress)
	if err != nil {
		return nil, err
	}
	serviceAccountKey, err := authority.ServiceAccountKey()
	if err != nil {
		return nil, err
	}
	kubeletCertificate, kubeletKey, err := authority.ClientFiles("kubelet-client", "kube-apiserver-kubelet-client", pki.MastersGroup)
	if err != nil {
		return nil, err
	}
	frontProxy, err := authority.Second("front-proxy", time.Now())
	if err != nil {
		return nil, err
	}
	proxyCertificate, proxyKey, err := frontProxy.ClientFiles("client", frontProxyClient)
	if err != nil {
		return nil, err
	}
	return []string{
		"--etcd-servers=" + etcdSocket,

		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + certificateFile,
		"--tls-private-key-file=" + keyFile,
		// Endpoints may not hold a loopback address, and no pod here dials the service.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,

		"--client-ca-file=" + authority.CertificateFile(),
		"--enable-bootstrap-token-auth=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true", // as in most clusters; whether a namespace may have such pods is for pod security to decide
		"--service-account-issuer=" + address(port),
		"--service-account-key-file=" + serviceAccountKey,
		"--service-account-signing-key-file=" + serviceAccountKey,

		// How the server reaches the nodes, for logs, exec, attach and port-forward.
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--kubelet-certificate-authority=" + authority.CertificateFile(),
		"--kubelet-client-certificate=" + kubeletCertificate,
		"--kubelet-client-key=" + kubeletKey,

		// How it reaches the servers of other API groups, such as metrics-server, and they know it.
		"--requestheader-client-ca-file=" + frontProxy.CertificateFile(),
		"--requestheader-allowed-names=" + frontProxyClient,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + proxyCertificate,
		"--proxy-client-key-file=" + proxyKey,

		// Without it the end of the server waits a minute for watches that are not closed.
		"--shutdown-send-retry-after=true",
		"--v=" + strconv.Itoa(verbosity),
	}, nil
}
