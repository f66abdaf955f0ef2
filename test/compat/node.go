package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
)

// nodeResult is how the pods of statusd run are.
type nodeResult struct {
	Pods, Right int
	// Writes are requests for statuses while nothing changes.
	Writes int
}

const (
	runNode    = "run"
	statusdLog = "statusd.log"
)

// tryNode starts statusd run with pods that use what is new in Kubernetes, and counts the writes of their statuses while nothing changes.
func tryNode(ctx context.Context, server *controlplane.Process, admin kubernetes.Interface, dir string) (result nodeResult, err error) {
	stop, err := startStatusd(ctx, server, dir)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	pods := newPods()
	result.Pods = len(pods)
	for _, pod := range pods {
		if _, err := admin.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return result, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = campaign.Await(waiting, time.Second, func() error {
		wrong, err := wrongPods(ctx, admin)
		if result.Right = len(pods) - len(wrong); err == nil && len(wrong) > 0 {
			err = fmt.Errorf("not as they should be: %q", wrong)
		}
		return err
	})
	if err != nil && ctx.Err() == nil { // a result
		text, _ := os.ReadFile(filepath.Join(dir, statusdLog))
		fmt.Printf("%v\n%s", err, controlplane.Tail(string(text), 40))
		err = nil
	}
	if err != nil {
		return result, err
	}
	before, err := statusWrites(ctx, admin)
	if err != nil {
		return result, err
	}
	if err := campaign.Pause(ctx, probed); err != nil {
		return result, err
	}
	after, err := statusWrites(ctx, admin)
	result.Writes = after - before
	for _, pod := range pods {
		err = errors.Join(err, admin.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}))
	}
	if err != nil {
		return result, err
	}
	leaving, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return result, campaign.Await(leaving, time.Second, func() error {
		left, err := podsOf(ctx, admin)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d pods are not deleted", len(left))
		}
		return err
	})
}

// startStatusd starts statusd run. Its log is shown if it does not stop well.
func startStatusd(ctx context.Context, server *controlplane.Process, dir string) (stop func() error, err error) {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return nil, err
	}
	if err := binaries.Build(ctx, os.Stdout, bin, binaries.Shim, binaries.Statusd); err != nil {
		return nil, err
	}
	config := run.Default()
	if config.Kubeconfig, err = server.NodeKubeconfig(runNode); err != nil {
		return nil, err
	}
	config.NodeName, config.StateDir, config.Manifests, config.HealthzBindAddress, config.Server.BindAddress = runNode, filepath.Join(dir, "state"), "", "", ""
	config.AllowPodsWithoutIsolation, config.Eviction.Hard = true, eviction.Disabled() // a disk that is nearly full is no version
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "statusd.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	logName := filepath.Join(dir, statusdLog)
	log, err := os.Create(logName)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	statusd := exec.Command(filepath.Join(bin, "statusd"), "run", "--config", file)
	statusd.Stdout, statusd.Stderr = log, log
	if err := statusd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		err := errors.Join(statusd.Process.Signal(syscall.SIGTERM), statusd.Wait())
		if err != nil {
			text, _ := os.ReadFile(logName)
			err = fmt.Errorf("statusd: %w\n%s", err, text)
		}
		return err
	}, nil
}

// newPods are pods, each with what a version of Kubernetes from 1.33 on has brought.
func newPods() []*v1.Pod {
	always, stop := v1.ContainerRestartPolicyAlways, v1.SIGUSR1
	kinds := map[string]func(*v1.PodSpec){
		"plain": func(*v1.PodSpec) {},
		"sidecar": func(s *v1.PodSpec) {
			s.InitContainers = []v1.Container{sleeping("sidecar")}
			s.InitContainers[0].RestartPolicy = &always
		},
		"probe": func(s *v1.PodSpec) {
			s.Containers[0].ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 1}
		},
		"stop-signal": func(s *v1.PodSpec) {
			s.OS, s.Containers[0].Lifecycle = &v1.PodOS{Name: v1.Linux}, &v1.Lifecycle{StopSignal: &stop}
		},
		"pod-resources": func(s *v1.PodSpec) {
			s.Resources = &v1.ResourceRequirements{Requests: amounts("10m", "16Mi"), Limits: amounts("1", "64Mi")}
		},
		"resources": func(s *v1.PodSpec) {
			s.Containers[0].Resources = v1.ResourceRequirements{Requests: amounts("10m", "16Mi"), Limits: amounts("1", "64Mi")}
		},
		"restart-rules": func(s *v1.PodSpec) {
			s.Containers[0].RestartPolicy = &always
			s.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestart,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
		},
		"job": func(s *v1.PodSpec) {
			s.RestartPolicy, s.Containers[0].Command = v1.RestartPolicyNever, []string{"true"}
		},
	}
	var pods []*v1.Pod
	for name, set := range kinds {
		no, grace := false, int64(1)
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}, Spec: v1.PodSpec{
			NodeName: runNode, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace, Containers: []v1.Container{sleeping("main")},
		}}
		set(&pod.Spec)
		pods = append(pods, pod)
	}
	return pods
}

func sleeping(name string) v1.Container {
	return v1.Container{Name: name, Image: process.Image, Command: []string{"sleep", "1000000"}}
}

func podsOf(ctx context.Context, admin kubernetes.Interface) ([]v1.Pod, error) {
	list, err := admin.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + runNode})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// wrongPods are the pods that neither are ready nor have succeeded.
func wrongPods(ctx context.Context, admin kubernetes.Interface) (wrong []string, err error) {
	pods, err := podsOf(ctx, admin)
	for _, pod := range pods {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == v1.ConditionTrue })
		if !ready && pod.Status.Phase != v1.PodSucceeded {
			wrong = append(wrong, fmt.Sprintf("%s is %s %s %s", pod.Name, pod.Status.Phase, pod.Status.Reason, pod.Status.Message))
		}
	}
	return wrong, err
}

var statusWrite = regexp.MustCompile(`(?m)^apiserver_request_total\{[^}]*resource="pods"[^}]*subresource="status"[^}]*\} (\d+)$`)

// statusWrites is how many requests for statuses of pods the server has answered.
func statusWrites(ctx context.Context, admin kubernetes.Interface) (sum int, err error) {
	text, err := admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	for _, found := range statusWrite.FindAllSubmatch(text, -1) {
		count, err := strconv.Atoi(string(found[1]))
		if err != nil {
			return 0, err
		}
		sum += count
	}
	return sum, err
}
