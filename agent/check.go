package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/certs"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/runtime"
)

// CheckConfig returns all reasons for which [New] would refuse the config: invalid values and
// unusable files. CheckConfig sends no requests.
func CheckConfig(config Config) error {
	problems := []error{config.Validate()}
	if config.NodeName == "" { // else Validate has looked at it
		_, err := config.nodeName()
		problems = append(problems, err)
	}
	if kubeconfig := config.firstKubeconfig(); kubeconfig != "" {
		if _, err := process.LoadKubeconfig(kubeconfig); err != nil {
			problems = append(problems, fmt.Errorf("config: %w", err))
		}
	}
	return errors.Join(append(problems, readableManifests(config.Manifests))...)
}

// firstKubeconfig is the first kubeconfig needed: the bootstrap kubeconfig if Kubeconfig is not
// written yet.
func (c *Config) firstKubeconfig() string {
	if c.BootstrapKubeconfig != "" {
		if needed, err := certs.Needed(c.Kubeconfig, time.Now()); err == nil && needed {
			return c.BootstrapKubeconfig
		}
	}
	return c.Kubeconfig
}

// CheckManifests reads the manifests as an agent with this config and runtime would. CheckManifests returns the
// number of static pods and all problems: unreadable manifests, with file, line and field, and
// fields that the runtime cannot honor, with pod and field. CheckManifests calls only the Check method of the
// runtime.
func CheckManifests(ctx context.Context, config Config, rt runtime.Runtime) (pods int, problems []error) {
	if config.Manifests == "" {
		return 0, nil
	}
	found, problems := readManifests(ctx, config)
	for _, pod := range found {
		for _, u := range rt.Check(pod) {
			problems = append(problems, fmt.Errorf("pod %s/%s would be rejected: %s", pod.Namespace, pod.Name, u))
		}
	}
	return len(found), problems
}

// readManifests lets the source itself read the directory, once.
func readManifests(ctx context.Context, config Config) (found []*v1.Pod, problems []error) {
	name, err := config.nodeName()
	if err != nil {
		return nil, []error{err}
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	manifests, err := source.NewManifests(source.ManifestsOptions{
		Directory: config.Manifests,
		NodeName:  name,
		Handle: func(c source.Change) {
			found = c.Pods
			enough()
		},
		Logger: slog.New(slog.DiscardHandler), // what it would say is returned
	})
	if err != nil {
		return nil, []error{err}
	}
	if err := manifests.Run(ctx); err != nil {
		return nil, []error{err}
	}
	for _, problem := range manifests.Problems() {
		problems = append(problems, problem)
	}
	return found, problems
}
