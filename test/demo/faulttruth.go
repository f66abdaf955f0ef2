package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// truth is how the machine and the pods on it are, found without statusd.
type truth struct {
	names           []string        // of the pods that there must be
	living          map[string]int  // the number of processes, by container ID
	done            map[string]bool // jobs that came to their end
	damaged         map[string]bool // pods whose records were damaged: their end may be unknown
	address, bootID string
}

// look compares what the API says with the truth.
func (r *faultRun) look(ctx context.Context) ([]string, error) {
	list, err := r.admin.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	node, err := r.admin.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	t := truth{names: r.pods.names, damaged: r.pods.damaged, done: map[string]bool{}, address: r.machine.address, bootID: r.machine.bootID}
	if t.living, err = r.machine.living(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(r.pods.done)
	for _, entry := range entries {
		t.done[entry.Name()] = true
	}
	return append(t.compareNode(node), t.compare(list.Items)...), err
}

func (t *truth) compareNode(node *v1.Node) (differences []string) {
	if node.Status.NodeInfo.BootID != t.bootID {
		differences = append(differences, "the Node has the boot ID of an earlier boot")
	}
	if !slices.ContainsFunc(node.Status.Addresses, func(a v1.NodeAddress) bool { return a.Address == t.address }) {
		differences = append(differences, fmt.Sprintf("the Node does not have the address %s, but %v", t.address, node.Status.Addresses))
	}
	return differences
}

// compare returns in what the API's pods are not as the truth.
func (t *truth) compare(pods []v1.Pod) (differences []string) {
	shown := map[string]bool{}
	missing := map[string]bool{}
	for _, name := range t.names {
		missing[name] = true
	}
	for i := range pods {
		pod := &pods[i]
		delete(missing, pod.Name)
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil {
				shown[c.ContainerID] = true
			}
		}
		for _, difference := range t.comparePod(pod) {
			differences = append(differences, pod.Name+": "+difference)
		}
	}
	for name := range missing {
		differences = append(differences, name+": is not there")
	}
	for id := range t.living {
		if !shown[id] {
			differences = append(differences, id+": has processes, and no pod shows it as Running")
		}
	}
	slices.Sort(differences)
	return differences
}

func (t *truth) comparePod(pod *v1.Pod) (differences []string) {
	running := 0
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running == nil {
			continue
		}
		running++
		if t.living[c.ContainerID] == 0 {
			differences = append(differences, fmt.Sprintf("container %s is Running and has no process (%s)", c.Name, c.ContainerID))
		}
	}
	if pod.DeletionTimestamp != nil {
		return differences
	}
	if ready := !isNotReady(*pod); ready != (running == len(pod.Spec.Containers)) {
		differences = append(differences, fmt.Sprintf("Ready is %t while %d of %d containers run", ready, running, len(pod.Spec.Containers)))
	}
	if running > 0 && pod.Status.Phase != v1.PodRunning {
		differences = append(differences, fmt.Sprintf("phase is %s while %d containers run", pod.Status.Phase, running))
	}
	if pod.Status.HostIP != "" && !ended(pod) && pod.Status.HostIP != t.address {
		differences = append(differences, fmt.Sprintf("hostIP is %s, want %s", pod.Status.HostIP, t.address))
	}
	if wrong := t.compareEnd(pod); wrong != "" {
		differences = append(differences, wrong)
	}
	return differences
}

// compareEnd compares how a pod ended with what its life is.
func (t *truth) compareEnd(pod *v1.Pod) string {
	phase, life := pod.Status.Phase, pod.Labels[lifeLabel]
	if !ended(pod) {
		if phase != v1.PodRunning && phase != v1.PodPending {
			return fmt.Sprintf("phase is %q", phase)
		}
		if life == job && t.done[pod.Name] && !t.damaged[pod.Name] {
			return fmt.Sprintf("phase is %s, and the job is done", phase)
		}
		return ""
	}
	switch {
	case life == lasting || life == crashing:
		return fmt.Sprintf("phase is %s (%s %s), and the pod is to run on", phase, pod.Status.Reason, pod.Status.Message)
	case t.damaged[pod.Name]:
		return ""
	case (phase == v1.PodSucceeded) != (life == job && t.done[pod.Name]):
		return fmt.Sprintf("phase is %s, and that the job was done is %t", phase, t.done[pod.Name])
	}
	return ""
}

// leaveNothing deletes all pods and looks for their remains.
func (r *faultRun) leaveNothing(ctx context.Context) error {
	if err := r.pods.remove(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		left, err := r.leftovers(ctx)
		if err == nil && len(left) == 0 {
			r.say("all pods are deleted: no process, no file, no control group and no pod of the API is left")
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("left of the pods: %q", left), err)
		case <-time.After(lookEvery):
		}
	}
}

func (r *faultRun) leftovers(ctx context.Context) ([]string, error) {
	list, err := r.admin.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var left []string
	for _, pod := range list.Items {
		left = append(left, "pod "+pod.Name)
	}
	processes, err := r.machine.processes()
	for _, p := range processes {
		left = append(left, strings.TrimSpace(fmt.Sprintf("process %d %s", p.pid, p.container)))
	}
	for _, pattern := range []string{
		filepath.Join(r.machine.state, "runtime", "pods", "*"), filepath.Join(r.machine.state, "runtime", "removing", "*"),
		"/sys/fs/cgroup" + r.machine.cgroup + "/*/cgroup.procs", "/sys/fs/cgroup/*" + r.machine.cgroup + "/*/cgroup.procs",
	} {
		files, globErr := filepath.Glob(pattern)
		left, err = append(left, files...), errors.Join(err, globErr)
	}
	// The group of all shims is statusd's own, and stays.
	return slices.DeleteFunc(left, func(file string) bool { return strings.HasSuffix(file, "/shims/cgroup.procs") }), err
}
