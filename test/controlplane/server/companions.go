package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/test/controlplane/server/accounts"
	"github.com/statusd/statusd/test/controlplane/server/nodecerts"
)

// companions are the loops that work on the objects of the API server: the least that namespaces need,
// or a scheduler and controllers.
type companions struct {
	failed chan error    // the first failure; buffered: there may be no reader
	done   chan struct{} // closed when all have returned
}

// startCompanions starts them. They wait for the server themselves, and return when ctx ends.
func startCompanions(ctx context.Context, c cluster) (*companions, error) {
	client, err := adminClientset(c)
	if err != nil {
		return nil, err
	}
	if !c.options.controllers {
		keeper := accounts.New(client, c.authority.Certificate())
		return startAll(ctx, map[string]func(context.Context) error{"service accounts": keeper.Run}), nil
	}
	afterReady := func(run func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := awaitReady(ctx, c.server(), c.authority, []string{readyz}); err != nil {
				return err
			}
			return run(ctx)
		}
	}
	return startAll(ctx, map[string]func(context.Context) error{
		"kube-controller-manager": afterReady(func(ctx context.Context) error {
			return runControllers(ctx, c.dir, c.authority, c.server(), c.options.nodeGrace)
		}),
		"kube-scheduler": afterReady(func(ctx context.Context) error {
			return runScheduler(ctx, c.dir, c.authority, c.server())
		}),
		"certificates of nodes": afterReady(func(ctx context.Context) error {
			if err := nodecerts.Bind(ctx, client); err != nil {
				return err
			}
			return nodecerts.New(client).Run(ctx)
		}),
	}), nil
}

func startAll(ctx context.Context, loops map[string]func(context.Context) error) *companions {
	c := &companions{failed: make(chan error, len(loops)), done: make(chan struct{})}
	var running sync.WaitGroup
	for name, run := range loops {
		running.Go(func() {
			err := run(ctx)
			if ctx.Err() != nil {
				return // it was asked to return
			}
			if err == nil {
				err = errors.New("ended by itself")
			}
			c.failed <- fmt.Errorf("%s: %w", name, err)
		})
	}
	go func() {
		running.Wait()
		close(c.done)
	}()
	return c
}

// await returns when all loops have returned, or when ctx ends.
func (c *companions) await(ctx context.Context) {
	select {
	case <-c.done:
	case <-ctx.Done():
	}
}

func adminClientset(c cluster) (kubernetes.Interface, error) {
	kubeconfig, err := c.authority.AdminKubeconfig(c.server())
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}
