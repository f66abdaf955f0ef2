package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	manageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
	"github.com/statusd/statusd/test/controlplane/server/pki"
)

// nodeControllers are the controllers that meet a node and its pods. The others of
// kube-controller-manager (volumes, clouds, autoscaling) have nothing to do here.
var nodeControllers = []string{
	// What makes pods.
	names.DeploymentController,
	names.ReplicaSetController,
	names.ReplicationControllerController,
	names.StatefulSetController,
	names.DaemonSetController,
	names.JobController,
	names.CronJobController,
	names.TTLAfterFinishedController,

	// What writes to pods or deletes them, beside the node.
	names.NodeLifecycleController,
	names.TaintEvictionController,
	names.PodGarbageCollectorController,
	names.GarbageCollectorController,
	names.NamespaceController,
	names.DisruptionController,

	// What lets pods in or not: a namespace with a quota takes none until the quota has a status.
	names.ResourceQuotaController,

	// What reads the pods' readiness.
	names.EndpointSliceController,

	// What nodes and pods get their identities from.
	names.CertificateSigningRequestSigningController,
	names.CertificateSigningRequestApprovingController,
	names.CertificateSigningRequestCleanerController,
	names.ServiceAccountController,
	names.ServiceAccountTokenController,
	names.RootCACertificatePublisherController,
	names.TokenCleanerController,
	names.ClusterRoleAggregationController,
}

// runControllers runs kube-controller-manager until ctx ends. The API server must be ready.
func runControllers(ctx context.Context, dir *datadir.Dir, authority *pki.Authority, server string, grace time.Duration) error {
	args, err := controllerArgs(dir, authority, server, grace)
	if err != nil {
		return err
	}
	o, err := manageroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("controller manager: %w", err)
	}
	known, disabled, aliases := manager.KnownControllers(), manager.ControllersDisabledByDefault(), manager.ControllerAliases()
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, named := range o.Flags(known, disabled, aliases).FlagSets {
		flags.AddFlagSet(named)
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("controller manager flags: %w", err)
	}
	config, err := o.Config(ctx, known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("controller manager options: %w", err)
	}
	return manager.Run(ctx, config.Complete())
}

func controllerArgs(dir *datadir.Dir, authority *pki.Authority, server string, grace time.Duration) ([]string, error) {
	const user = "system:kube-controller-manager"
	kubeconfig, err := componentKubeconfig(dir, authority, server, user)
	if err != nil {
		return nil, err
	}
	serviceAccountKey, err := authority.ServiceAccountKey()
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(nodeControllers, ","),
		// Each controller has the rights of its own service account, as in a cluster.
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--secure-port=0",
		"--allocate-node-cidrs=false",
		"--root-ca-file=" + authority.CertificateFile(),
		"--service-account-private-key-file=" + serviceAccountKey,
		"--cluster-signing-cert-file=" + authority.CertificateFile(),
		"--cluster-signing-key-file=" + authority.KeyFile(),
		// Pods that are made by hand come and go quickly here.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
	if grace > 0 {
		period := min(5*time.Second, grace/5)
		args = append(args,
			"--node-monitor-grace-period="+grace.String(),
			"--node-monitor-period="+period.String())
	}
	return args, nil
}

// componentKubeconfig writes the kubeconfig of a component of the control plane.
func componentKubeconfig(dir *datadir.Dir, authority *pki.Authority, server, user string) (string, error) {
	content, err := authority.ComponentKubeconfig(server, user)
	if err != nil {
		return "", err
	}
	path := dir.ComponentKubeconfig(strings.TrimPrefix(user, "system:"))
	return path, datadir.WriteFile(path, content, 0o600)
}
