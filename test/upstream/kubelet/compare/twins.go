package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/stock"
)

const (
	// shared are the pods that two kubelets of one name both run.
	shared = 3
	// together is for how long two kubelets of one name run.
	together = time.Minute
)

// compareTwins runs two kubelets of one name on two machines, as after a restored image of a machine: both run the node's pods and report
// them. It counts their requests, then ends one machine and waits until the API has the containers of the other one.
func compareTwins(ctx context.Context, agents []agent) error {
	table := "| kubelet | status requests of both in a minute | one has ended → the API has the containers of the other |\n|---|--:|--:|\n"
	for _, a := range agents {
		requests, alone, err := measureTwins(ctx, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		table += fmt.Sprintf("| %s | %d | %.1f s |\n", a.name, requests, alone.Seconds())
	}
	campaign.Out.Close()
	fmt.Print(table)
	return nil
}

func measureTwins(ctx context.Context, a agent) (requests int, alone time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Minute, errors.New("not within 15 minutes"))
	defer cancel()
	dir, err := os.MkdirTemp("", "twins-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	api, err := controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(dir, "api"), Log: campaign.Out})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = api.Kill() }()
	between, err := newProxy(api, "twin", 0)
	if err != nil {
		return 0, 0, err
	}
	defer between.close()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := between.writeKubeconfig(kubeconfig); err != nil {
		return 0, 0, err
	}
	first, err := a.startNode(ctx, api, "twin", kubeconfig, "")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	for i := range shared {
		if _, err := first.Create(ctx, first.Pod(fmt.Sprintf("shared-%d", i), stock.Forever)); err != nil {
			return 0, 0, err
		}
	}
	if err := stock.Await(ctx, func() error { return reportedFrom(ctx, first) }); err != nil {
		return 0, 0, err
	}
	second, err := a.startNode(ctx, api, "twin", kubeconfig, "")
	if err != nil {
		return 0, 0, err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, second.Close())
		}
	}()
	if err := stock.Await(ctx, func() error {
		containers, err := containersOf(ctx, second)
		if err == nil && len(containers) < 2*shared { // a sandbox each
			err = fmt.Errorf("the second machine runs %d containers", len(containers))
		}
		return err
	}); err != nil {
		return 0, 0, err
	}
	between.taken()
	if err := campaign.Pause(ctx, together); err != nil {
		return 0, 0, err
	}
	for _, n := range between.taken() {
		requests += n
	}
	closed = true
	if err := second.Close(); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	err = stock.Await(ctx, func() error { return reportedFrom(ctx, first) })
	return requests, time.Since(began), err
}

// reportedFrom returns nil if the API says that the shared pods run and are ready in the containers of this node.
func reportedFrom(ctx context.Context, n *stock.Node) error {
	containers, err := containersOf(ctx, n)
	if err != nil {
		return err
	}
	for i := range shared {
		pod, err := n.Admin().CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, fmt.Sprintf("shared-%d", i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !stock.Ready(pod) || pod.Status.Phase != v1.PodRunning {
			return fmt.Errorf("pod %s is %s, ready %t", pod.Name, pod.Status.Phase, stock.Ready(pod))
		}
		id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
		if !containers[id] {
			return fmt.Errorf("pod %s is in container %s of another machine", pod.Name, id)
		}
	}
	return nil
}

// containersOf are the IDs of a node's containers and sandboxes.
func containersOf(ctx context.Context, n *stock.Node) (map[string]bool, error) {
	output, err := exec.CommandContext(ctx, "ctr", "-a", n.Containerd.Socket(), "-n", "k8s.io", "containers", "list", "-q").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("ctr containers list: %w: %s", err, output)
	}
	ids := map[string]bool{}
	for _, id := range strings.Fields(string(output)) {
		ids[id] = true
	}
	return ids, nil
}
