package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/cri"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process"
)

// newRuntime makes the runtime that the config names.
func newRuntime(config run.Config) func(agent.NodeServices) (runtime.Runtime, error) {
	return func(node agent.NodeServices) (runtime.Runtime, error) { return successor(config)(nil, node) }
}

// successor makes a runtime that takes over from the one before a reload, if there is one.
func successor(config run.Config) func(runtime.Runtime, agent.NodeServices) (runtime.Runtime, error) {
	return func(former runtime.Runtime, node agent.NodeServices) (runtime.Runtime, error) {
		if config.Runtime == run.RuntimeCRI {
			return newCRI(config, former, node)
		}
		options := process.Options{
			Dir:         node.Dir,
			Version:     node.Version,
			Addresses:   node.Addresses,
			Allocatable: node.Allocatable,
			Objects:     node.Objects,
			APIServer:   node.APIServer,
			Event:       node.Event,
			Logger:      node.Logger,

			LogMaxBytes:               config.ContainerLogs.MaxBytes,
			AllowPodsWithoutIsolation: config.AllowPodsWithoutIsolation,
			CgroupParent:              config.CgroupParent,
		}
		options.Former, _ = former.(*process.Runtime)
		rt, err := process.New(options)
		if err != nil {
			return nil, err // not a nil pointer in an interface
		}
		return rt, nil
	}
}

// newCRI makes a runtime over a container runtime. The runtime takes over the pods of an earlier
// runtime by the records on disk.
func newCRI(config run.Config, former runtime.Runtime, node agent.NodeServices) (runtime.Runtime, error) {
	if closer, ok := former.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			return nil, err
		}
	}
	rt, err := cri.New(cri.Options{
		Dir:         filepath.Join(node.Dir, "cri"),
		Endpoint:    config.ContainerRuntimeEndpoint,
		Addresses:   node.Addresses,
		Allocatable: node.Allocatable,
		Objects:     node.Objects,
		Client:      node.Client,
		Event:       node.Event,
		Logger:      node.Logger,

		LogMaxBytes:   config.ContainerLogs.MaxBytes,
		CgroupParent:  config.CgroupParent,
		ClusterDNS:    config.ClusterDNS,
		ClusterDomain: config.ClusterDomain,
	})
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return rt, nil
}

// check is [run.Check] with a real runtime that runs nothing: its features depend on the machine
// and the user. The state of a running statusd is not touched.
func check(ctx context.Context, config run.Config) (pods int, problems []error) {
	if config.Runtime == run.RuntimeCRI { // what a pod can have, the container runtime decides
		return run.Check(ctx, config, cri.Checker{})
	}
	dir, err := os.MkdirTemp("", "statusd-check-")
	if err != nil {
		return 0, []error{fmt.Errorf("check manifests: %w", err)}
	}
	defer os.RemoveAll(dir)
	rt, err := process.New(process.Options{Dir: dir, CgroupParent: config.CgroupParent})
	if err != nil {
		return 0, []error{fmt.Errorf("check manifests: %w", err)}
	}
	defer rt.Close()
	return run.Check(ctx, config, rt)
}

// end ends the containers that a statusd of this config has left running, and then every process
// that a statusd has started and that still runs. end returns how many containers there were.
func end(ctx context.Context, config run.Config, grace time.Duration) (ended int, err error) {
	if _, err := os.Stat(config.StateDir); err == nil {
		if ended, err = endContainers(ctx, config, grace); err != nil {
			return ended, err
		}
	}
	return ended, process.EndLeftovers(ctx, config.RuntimeDir())
}

func endContainers(ctx context.Context, config run.Config, grace time.Duration) (ended int, err error) {
	if config.Runtime == run.RuntimeCRI {
		err = withCRI(config, func(rt runtime.Runtime) (err error) {
			ended, err = agent.EndContainers(ctx, rt, grace)
			return err
		})
		return ended, err
	}
	rt, err := process.New(process.Options{Dir: config.RuntimeDir()})
	if err != nil {
		return 0, fmt.Errorf("end containers: %w", err)
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	return agent.EndContainers(ctx, rt, grace)
}

// withCRI uses the runtime of a node over a container runtime, whose statusd does not run.
func withCRI(config run.Config, use func(runtime.Runtime) error) (err error) {
	rt, err := newCRI(config, nil, agent.NodeServices{Dir: config.RuntimeDir()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.(io.Closer).Close()) }()
	return use(rt)
}

// removeCRI removes the pods of such a node from the container runtime, which else would keep them.
func removeCRI(ctx context.Context, config run.Config) error {
	return withCRI(config, func(rt runtime.Runtime) error {
		pods, err := rt.Pods(ctx)
		for _, pod := range pods {
			err = errors.Join(err, rt.RemovePod(ctx, pod.Manifest.UID))
		}
		return err
	})
}

// reset ends everything and deletes the state and the remaining control groups.
func reset(ctx context.Context, config run.Config, grace time.Duration) (ended int, err error) {
	if ended, err = end(ctx, config, grace); err != nil {
		return ended, err
	}
	if config.Runtime == run.RuntimeCRI {
		if err := removeCRI(ctx, config); err != nil {
			return ended, fmt.Errorf("remove pods: %w", err)
		}
	}
	process.RemoveGroups(config.CgroupParent, time.Minute)
	return ended, run.DeleteState(config)
}
