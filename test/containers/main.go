package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/stock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "containers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	if err := stock.Missing(); err != nil {
		return err
	}
	program, err := binaries.BuildStatusd(ctx, os.Stderr)
	if err != nil {
		return err
	}
	node, err := stock.Run(ctx, stock.Options{Name: "containers", Statusd: program, Controllers: true, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := startPods(ctx, node); err != nil {
		return err
	}
	if err := stock.Await(ctx, func() error { return ready(ctx, node) }); err != nil {
		return err
	}
	if err := show(ctx, node, w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nKUBECONFIG=%s kubectl get pods,nodes -o wide    (Ctrl-C ends everything)\n", node.API.AdminKubeconfig())
	if os.Getenv("ONCE") == "" {
		<-ctx.Done()
	}
	return nil
}

// startPods creates a server, a job and one whose command does not exist. They have the network of the machine: this containerd has no plugins of CNI.
func startPods(ctx context.Context, node *stock.Node) error {
	for name, command := range map[string][]string{
		"server":  {"/bin/sh", "-c", "echo I am $HOSTNAME; while :; do sleep 1; done"},
		"job":     {"/bin/sh", "-c", "echo done"},
		"mistake": {"/bin/no-such-command"},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{
			HostNetwork: true, RestartPolicy: v1.RestartPolicyNever, AutomountServiceAccountToken: new(bool),
			Containers: []v1.Container{{Name: "main", Image: stock.Image, ImagePullPolicy: v1.PullNever, Command: command}},
		}}
		err := stock.Await(ctx, func() error { // the service account comes with the controllers
			_, err := node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ready is why the pods are not what they are going to be.
func ready(ctx context.Context, node *stock.Node) error {
	for name, want := range map[string]v1.PodPhase{"server": v1.PodRunning, "job": v1.PodSucceeded, "mistake": v1.PodFailed} {
		pod, err := node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase != want {
			return fmt.Errorf("pod %s is %s, want %s", name, pod.Status.Phase, want)
		}
	}
	return nil
}

func show(ctx context.Context, node *stock.Node, w io.Writer) error {
	machine, err := node.Admin().CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "node %s runs %s\n\n", machine.Name, machine.Status.NodeInfo.ContainerRuntimeVersion)
	pods, err := node.Admin().CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POD\tPHASE\tCONTAINER\tSTATE")
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			fmt.Fprintf(table, "%s\t%s\t%.24s\t%s\n", pod.Name, pod.Status.Phase, c.ContainerID, stateOf(&c.State))
		}
	}
	return table.Flush()
}

func stateOf(s *v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("%s, exit code %d", s.Terminated.Reason, s.Terminated.ExitCode)
	case s.Waiting != nil:
		return s.Waiting.Reason
	}
	return "unknown"
}
