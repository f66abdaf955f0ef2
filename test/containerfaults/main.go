package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/nodeclient"
	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/stock"
)

const (
	// bound is the time after a fault within which statuses must be true; patience is how long the campaign waits for
	// late ones.
	bound    = 10 * time.Second
	patience = 2 * time.Minute
	// settled is for how long statuses must be true.
	settled = time.Second
	// diskBytes is the size of the file system of statusd's state.
	diskBytes = 32 << 20
)

// forever is a script that can be told from that of sandboxes.
const forever = "while :; do sleep 999; done"

func main() { campaign.Main("containerfaults", run) }

// storm is a node under faults.
type storm struct {
	node    *stock.Node
	cri     runtimeapi.RuntimeServiceClient
	random  *rand.Rand
	pods    []*v1.Pod // as they are created
	late    []string  // statuses that were wrong for longer than bound
	healed  map[string][]time.Duration
	stateIn string // statusd's state directory
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("containerfaults", flag.ContinueOnError)
	faults := flags.Int("faults", 200, "how many faults")
	pods := flags.Int("pods", 30, "how many pods")
	seed := flags.Uint64("seed", 1, "what decides about the faults")
	logs := flags.String("logs", "build/containerfaults", "where the logs of statusd and containerd are copied if the campaign fails, with the goroutines of statusd")
	only := flags.String("only", "", "the one kind of fault to try")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := stock.Missing(); err != nil {
		return err
	}
	program, err := binaries.BuildStatusd(ctx, os.Stderr)
	if err != nil {
		return err
	}
	node, err := stock.Run(ctx, stock.Options{Name: "faults", Statusd: program, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, keepLogs(node, *logs))
		}
		err = errors.Join(err, node.Close())
	}()
	conn, err := nodeclient.Runtime("unix://" + node.Containerd.Socket())
	if err != nil {
		return err
	}
	defer conn.Close()
	s := &storm{
		node: node, cri: runtimeapi.NewRuntimeServiceClient(conn), random: rand.New(rand.NewPCG(*seed, 0)), healed: map[string][]time.Duration{},
		stateIn: filepath.Join(node.Dir(), "disk", "statusd"),
	}
	if err := s.prepare(ctx, *pods); err != nil {
		return err
	}
	for i := range *faults {
		if err := s.round(ctx, i, *faults, *only); err != nil {
			return err
		}
	}
	return s.finish(ctx)
}

// keepLogs copies the logs of a node that fails, after statusd has written its goroutines to its own.
func keepLogs(node *stock.Node, dir string) error {
	statusd := node.Kubelet.Process()
	statusd.Signal(syscall.SIGQUIT)
	select {
	case <-statusd.Exited():
	case <-time.After(10 * time.Second):
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, log := range []string{statusd.Log(), node.Containerd.Process().Log()} {
		content, err := os.ReadFile(log)
		errs = append(errs, err, os.WriteFile(filepath.Join(dir, filepath.Base(log)), content, 0o644))
	}
	fmt.Fprintf(os.Stderr, "logs are in %s\n", dir)
	return errors.Join(errs...)
}

// prepare puts statusd's state on a small file system, and starts the pods.
func (s *storm) prepare(ctx context.Context, pods int) error {
	s.node.Kubelet.Process().Kill()
	mount := fmt.Sprintf("mount -t tmpfs -o size=%d,mode=711 tmpfs %s", diskBytes, s.stateIn)
	if err := s.onNode(mount); err != nil {
		return err
	}
	if err := s.node.StartStatusd(); err != nil {
		return err
	}
	for i := range pods {
		pod := s.pod(i)
		s.pods = append(s.pods, pod)
		if _, err := s.node.Create(ctx, pod); err != nil {
			return err
		}
	}
	_, err := s.awaitTruth(ctx, "start")
	return err
}

// pod is one of several kinds: most run forever, some have two containers, a probe, or end, once or again and again.
func (s *storm) pod(i int) *v1.Pod {
	kind, script := "runs", forever
	switch i % 10 {
	case 3:
		kind, script = "crashes", "sleep 5; exit 3"
	case 6:
		kind, script = "ends", fmt.Sprintf("sleep 20; exit %d", i%7)
	case 8:
		kind = "two"
	case 9:
		kind = "probed"
	}
	pod := s.node.Pod(fmt.Sprintf("%s-%d", kind, i), script)
	main := &pod.Spec.Containers[0]
	switch kind {
	case "ends":
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
	case "two":
		second := *main.DeepCopy()
		second.Name = "second"
		pod.Spec.Containers = append(pod.Spec.Containers, second)
	case "probed":
		main.ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 5}
	}
	return pod
}

// round breaks something, with some traffic beside it, and waits for the truth.
func (s *storm) round(ctx context.Context, i, of int, only string) error {
	kinds := faults()
	if only != "" {
		kinds = slices.DeleteFunc(kinds, func(f fault) bool { return f.name != only })
	}
	if len(kinds) == 0 {
		return fmt.Errorf("there is no fault %q", only)
	}
	f := kinds[s.random.IntN(len(kinds))]
	if s.random.IntN(2) == 0 {
		if err := s.replace(ctx, s.pods[s.random.IntN(len(s.pods))]); err != nil {
			return err
		}
	}
	if err := f.do(s, ctx); err != nil {
		return fmt.Errorf("fault %d, %s: %w", i+1, f.name, err)
	}
	took, err := s.awaitTruth(ctx, f.name)
	if err != nil {
		return fmt.Errorf("fault %d: %w", i+1, err)
	}
	fmt.Fprintf(campaign.Out, "%3d %-28s true after %s\n", i+1, f.name, took.Round(100*time.Millisecond))
	if took > bound {
		fmt.Fprintln(campaign.Out, s.late[len(s.late)-1])
	}
	campaign.Out.Set("%d of %d faults, %d late", i+1, of, len(s.late))
	return nil
}

// replace deletes a pod, and creates one of the same name as soon as it is gone.
func (s *storm) replace(ctx context.Context, pod *v1.Pod) error {
	pods := s.node.Admin().CoreV1().Pods(pod.Namespace)
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := s.node.Create(ctx, pod)
	return err
}

// finish deletes the pods and looks for their remains.
func (s *storm) finish(ctx context.Context) error {
	pods := s.node.Admin().CoreV1().Pods(metav1.NamespaceDefault)
	for _, pod := range s.pods {
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the end of all pods takes too long"))
	defer cancel()
	err := stock.Await(ctx, func() error {
		left, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d pods are left in the API", len(left.Items))
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := stock.Await(ctx, func() error { return s.leftovers(ctx) }); err != nil {
		return err
	}
	campaign.Out.Close()
	for _, f := range faults() {
		fmt.Printf("%-28s %4d times, true after %s\n", f.name, len(s.healed[f.name]), campaign.Spread(s.healed[f.name]))
	}
	fmt.Println("nothing is left: no sandbox, container, process, mount, control group, log or record")
	for _, late := range s.late {
		fmt.Println("late:", late)
	}
	if len(s.late) > 0 {
		return fmt.Errorf("statuses were wrong for longer than %s after %d faults", bound, len(s.late))
	}
	return nil
}
