package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
	"github.com/statusd/statusd/test/controlplane/server/pki"
)

// runScheduler runs kube-scheduler until ctx ends. The API server must be ready.
func runScheduler(ctx context.Context, dir *datadir.Dir, authority *pki.Authority, server string) error {
	kubeconfig, err := componentKubeconfig(dir, authority, server, "system:kube-scheduler")
	if err != nil {
		return err
	}
	o := scheduleroptions.NewOptions()
	flags := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, named := range o.Flags.FlagSets {
		flags.AddFlagSet(named)
	}
	if err := flags.Parse([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0"}); err != nil {
		return fmt.Errorf("scheduler flags: %w", err)
	}
	config, scheduling, err := scheduler.Setup(ctx, o)
	if err != nil {
		return fmt.Errorf("scheduler options: %w", err)
	}
	return scheduler.Run(ctx, config, scheduling)
}
