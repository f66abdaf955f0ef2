package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// lookEvery is how often the pods are looked at.
	lookEvery = 250 * time.Millisecond
	format    = "%-10s %-22s %-7s %-22s %s\n"
)

// show prints the table of pods, and after that each row that changes, until ctx ends or
// something that should run does not. Errors are waited out: they end with the outage, or
// with what ends this.
func (d *demo) show(ctx context.Context, daemon *daemon, server <-chan struct{}, pods func(context.Context) ([]v1.Pod, error)) error {
	fmt.Fprintf(d.out, format, "TIME", "POD", "READY", "STATUS", "RESTARTS")
	shown := map[string]string{}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if list, err := pods(ctx); err == nil {
			d.showChanges(list, shown)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-daemon.Exited:
			return daemon.failure()
		case <-server:
			return fmt.Errorf("the control plane ended by itself; see controlplane.log in %s", d.state)
		case <-ticker.C:
		}
	}
}

func (d *demo) showChanges(list []v1.Pod, shown map[string]string) {
	now := time.Now().Format(time.TimeOnly)
	present := map[string]bool{}
	for i := range list {
		pod := &list[i]
		key := pod.Namespace + "/" + pod.Name
		present[key] = true
		ready, word, restarts := describe(pod)
		if row := ready + word + restarts; shown[key] != row {
			shown[key] = row
			fmt.Fprintf(d.out, format, now, pod.Name, ready, word, restarts)
		}
	}
	for key := range shown {
		if !present[key] {
			delete(shown, key)
			_, name, _ := strings.Cut(key, "/")
			fmt.Fprintf(d.out, format, now, name, "-", "gone", "-")
		}
	}
}

// describe is a pod in the words that kubectl uses.
func describe(pod *v1.Pod) (ready, word, restarts string) {
	readyCount, total, restarted := 0, len(pod.Spec.Containers), 0
	count := func(c v1.ContainerStatus) {
		restarted += int(c.RestartCount)
		if c.Ready && c.State.Running != nil {
			readyCount++
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		count(c)
	}
	for i, c := range pod.Spec.InitContainers {
		if c.RestartPolicy == nil { // not a sidecar
			continue
		}
		total++
		if i < len(pod.Status.InitContainerStatuses) {
			count(pod.Status.InitContainerStatuses[i])
		}
	}
	return fmt.Sprintf("%d/%d", readyCount, total), statusWord(pod), strconv.Itoa(restarted)
}

func statusWord(pod *v1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	if word := initWord(pod); word != "" {
		return word
	}
	word := string(pod.Status.Phase)
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			return c.State.Waiting.Reason
		case c.State.Terminated != nil && c.State.Terminated.Reason != "":
			word = c.State.Terminated.Reason
		}
	}
	if word == "" {
		return "Pending"
	}
	return word
}

// initWord says how far the init containers are, empty once they are through.
func initWord(pod *v1.Pod) string {
	for i, c := range pod.Status.InitContainerStatuses {
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0:
			continue
		case c.Started != nil && *c.Started && i < len(pod.Spec.InitContainers) && pod.Spec.InitContainers[i].RestartPolicy != nil:
			continue
		case c.State.Terminated != nil:
			return "Init:" + c.State.Terminated.Reason
		case c.State.Waiting != nil && c.State.Waiting.Reason != "PodInitializing" && c.State.Waiting.Reason != "":
			return "Init:" + c.State.Waiting.Reason
		}
		return fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
	}
	return ""
}
