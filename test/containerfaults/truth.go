package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/test/stock"
)

const (
	labelUID  = "io.kubernetes.pod.uid"
	labelName = "io.kubernetes.container.name"
)

// awaitTruth waits until what the API says is so, and returns how long that took.
func (s *storm) awaitTruth(ctx context.Context, after string) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the API is still wrong"))
	defer cancel()
	var wrong error // when the bound was over
	var took time.Duration
	err := stock.Await(ctx, func() error {
		took = time.Since(began)
		err := s.wrong(ctx)
		if err == nil { // containerd may not have seen yet what has ended
			time.Sleep(settled)
			err = s.wrong(ctx)
		}
		if err != nil && time.Since(began) > bound && wrong == nil {
			wrong = err
		}
		return err
	})
	if err != nil {
		return took, fmt.Errorf("%s after %s: %w", took.Round(time.Second), after, err)
	}
	if after != "start" {
		s.healed[after] = append(s.healed[after], took)
		if took > bound {
			s.late = append(s.late, fmt.Sprintf("%s: true after %s; until then %v", after, took.Round(time.Second), wrong))
		}
	}
	return took, nil
}

// wrong is where the API and containerd differ.
func (s *storm) wrong(ctx context.Context) error {
	pods, err := s.node.Admin().CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	listed, err := s.cri.ListContainers(bounded, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	if err := s.nodeReady(ctx); err != nil {
		return err
	}
	return errors.Join(append(differences(pods.Items, listed.Containers), s.wrongEnds(bounded, pods.Items))...)
}

// wrongEnds compares the exit codes of the ends that containerd still has.
func (s *storm) wrongEnds(ctx context.Context, pods []v1.Pod) error {
	var wrong []error
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			end := status.State.Terminated
			if end == nil {
				end = status.LastTerminationState.Terminated
			}
			if end == nil || end.ContainerID == "" {
				continue
			}
			_, id, _ := strings.Cut(end.ContainerID, "://")
			response, err := s.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
			if err == nil && response.Status.State == runtimeapi.ContainerState_CONTAINER_EXITED && response.Status.ExitCode != end.ExitCode {
				wrong = append(wrong, fmt.Errorf("pod %s, container %s: the API says exit code %d, containerd %d", pods[i].Name, status.Name, end.ExitCode, response.Status.ExitCode))
			}
		}
	}
	return errors.Join(wrong...)
}

func (s *storm) nodeReady(ctx context.Context) error {
	node, err := s.node.Admin().CoreV1().Nodes().Get(ctx, s.node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady && c.Status != v1.ConditionTrue {
			return fmt.Errorf("the node is not ready: %s", c.Message)
		}
	}
	return nil
}

// differences compares each container status with the container, and each container that runs with a status.
func differences(pods []v1.Pod, containers []*runtimeapi.Container) (all []error) {
	running := map[string]*runtimeapi.Container{} // by pod and name
	for _, c := range containers {
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		key := c.Labels[labelUID] + "/" + c.Labels[labelName]
		if running[key] != nil {
			all = append(all, fmt.Errorf("container %s of pod %s runs twice", c.Labels[labelName], c.Labels["io.kubernetes.pod.name"]))
		}
		running[key] = c
	}
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil {
			all = append(all, fmt.Errorf("pod %s is still being deleted", pod.Name))
		}
		if len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
			all = append(all, fmt.Errorf("pod %s has %d container statuses: %s", pod.Name, len(pod.Status.ContainerStatuses), pod.Status.Phase))
		}
		ready := true
		for _, status := range pod.Status.ContainerStatuses {
			key := string(pod.UID) + "/" + status.Name
			if err := difference(&status, running[key]); err != nil {
				all = append(all, fmt.Errorf("pod %s, container %s: %w", pod.Name, status.Name, err))
			}
			delete(running, key)
			ready = ready && status.Ready
		}
		if stock.Ready(pod) != ready {
			all = append(all, fmt.Errorf("pod %s: Ready is %v, its containers say %v", pod.Name, !ready, ready))
		}
	}
	for _, c := range running {
		all = append(all, fmt.Errorf("container %s of pod %s runs, and the API has no such pod", c.Labels[labelName], c.Labels["io.kubernetes.pod.name"]))
	}
	return all
}

func difference(status *v1.ContainerStatus, running *runtimeapi.Container) error {
	_, id, _ := strings.Cut(status.ContainerID, "://")
	switch {
	case status.State.Running != nil && (running == nil || running.Id != id):
		return errors.New("the API says running, and containerd has no such container that runs")
	case status.State.Running == nil && running != nil:
		return fmt.Errorf("a container runs, and the API says %v", status.State)
	case status.Ready && status.State.Running == nil:
		return errors.New("the API says ready, and nothing runs")
	}
	return nil
}
