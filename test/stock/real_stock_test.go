//go:build real

package stock_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/test/stock"
)

// A node runs a pod; what is done to the kubelet, to containerd and to the container is seen by the others.
func TestNode(t *testing.T) {
	n := stock.Start(t, stock.Options{FeatureGates: map[string]bool{"PodsAPI": true}})
	ctx := stock.Context(t)
	ready := func(p *v1.Pod) bool { return stock.Ready(p) }
	if _, err := n.Create(ctx, n.Pod("web", stock.Forever)); err != nil {
		t.Fatal(err)
	}
	first, err := n.AwaitPod(ctx, "default", "web", "ready", ready)
	if err != nil {
		t.Fatal(err)
	}

	t.Log("a container killed behind the kubelet's back is restarted")
	id := first.Status.ContainerStatuses[0].ContainerID
	if err := n.KillContainer(id); err != nil {
		t.Fatal(err)
	}
	restarted := func(p *v1.Pod) bool { return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 1 }
	second, err := n.AwaitPod(ctx, "default", "web", "restarted", restarted)
	if err != nil {
		t.Fatal(err)
	}

	t.Log("a paused kubelet restarts nothing, a resumed one does")
	if err := n.Kubelet.Process().Pause(ctx); err != nil {
		t.Fatal(err)
	}
	id = second.Status.ContainerStatuses[0].ContainerID
	if err := n.KillContainer(id); err != nil {
		t.Fatal(err)
	}
	if _, err := n.AwaitPod(ctx, "default", "web", "running", func(p *v1.Pod) bool { return p.Status.ContainerStatuses[0].State.Running != nil }); err != nil {
		t.Fatal(err)
	}
	n.Kubelet.Process().Resume()
	if _, err := n.AwaitPod(ctx, "default", "web", "terminated", func(p *v1.Pod) bool {
		status := p.Status.ContainerStatuses[0]
		return ended(status.State, id) || ended(status.LastTerminationState, id)
	}); err != nil {
		t.Fatal(err)
	}

	t.Log("kubelet and containerd can be killed and started again")
	n.Kubelet.Process().Kill()
	n.Containerd.Process().Kill()
	if _, err := net.Dial("tcp", n.Kubelet.Address()); err == nil {
		t.Error("a killed kubelet still listens")
	}
	if err := n.Containerd.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := n.Kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Create(ctx, n.Pod("next", stock.Forever)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.AwaitPod(ctx, "default", "next", "ready", ready); err != nil {
		t.Fatal(err)
	}
	for _, socket := range []string{n.Containerd.Socket(), n.Kubelet.PodsSocket()} {
		if err := stock.Await(ctx, func() error {
			conn, err := net.Dial("unix", socket)
			if err == nil {
				conn.Close()
			}
			return err
		}); err != nil {
			t.Errorf("the programs of the node are reached from outside of it: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(n.Root(), "proc", "1", "mountinfo")); err != nil {
		t.Errorf("the node's processes are seen from outside: %v", err)
	}
}

func ended(s v1.ContainerState, id string) bool {
	return s.Terminated != nil && s.Terminated.ContainerID == id
}

// Tests that run at the same time do not get in each other's way when they ask.
func TestManyAskAtOnce(t *testing.T) {
	stock.Need(t)
	errs := make([]error, 20)
	var asking sync.WaitGroup
	for i := range errs {
		asking.Go(func() { errs[i] = stock.Missing() })
	}
	asking.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// Nothing of a node is left: no process, control group or file.
func TestClosedNodeLeavesNothing(t *testing.T) {
	stock.Need(t)
	ctx := stock.Context(t)
	n, err := stock.Run(ctx, stock.Options{Name: "brief", Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Create(ctx, n.Pod("web", stock.Forever)); err != nil {
		t.Fatal(err)
	}
	pod, err := n.AwaitPod(ctx, "default", "web", "ready", stock.Ready)
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := n.PIDs(pod.Status.ContainerStatuses[0].ContainerID); err != nil || len(pids) == 0 {
		t.Fatalf("processes of the container: %v, %v", pids, err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(n.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the node's directory is left: %v", err)
	}
	groups, err := stock.Groups(n.Group())
	if err != nil || len(groups) > 0 {
		t.Errorf("control groups are left: %v, %v", groups, err)
	}
}
