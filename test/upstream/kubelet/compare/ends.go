package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/stock"
)

// kinds are the ways in which pods end while the API server is down.
var kinds = []struct{ name, what string }{
	{"kept", "ends by itself, exit code 0; its container stays in the runtime"},
	{"pruned", "the same; its container is removed from the runtime before the kubelet starts again, as by a prune or the loss of the runtime's disk"},
	{"deleted", "was deleted with a grace period just before; exits with 0 when it is asked to end"},
}

// outcome is what a kubelet reported in the end of the pods of a kind.
type outcome struct {
	right, again int            // pods with their true end, and pods that ran twice
	reported     map[string]int // what the API said last
}

// compareEnds lets pods end while the API server is down, kills the kubelet that has seen their ends, and counts the ends that
// the API has once server and kubelet are back.
func compareEnds(ctx context.Context, agents []agent, pods int) error {
	table := "| pods | kubelet | ends | lost | ran a second time | reported in the end |\n|---|---|--:|--:|--:|---|\n"
	metrics := map[string]map[string]float64{}
	for _, a := range agents {
		outcomes, counts, err := measureEnds(ctx, a, pods)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		metrics[a.name] = counts
		for _, kind := range kinds {
			o := outcomes[kind.name]
			var reported []string
			for what, n := range o.reported {
				reported = append(reported, fmt.Sprintf("%d × %s", n, what))
			}
			table += fmt.Sprintf("| %s: %s | %s | %d | %d | %d | %s |\n", kind.name, kind.what, a.name, pods, pods-o.right, o.again, strings.Join(reported, "; "))
		}
	}
	campaign.Out.Close()
	fmt.Print(table)
	for i, a := range agents {
		fmt.Printf("metrics that only %s has: %v\n", a.name, namesWithout(metrics[a.name], metrics[agents[len(agents)-1-i].name]))
	}
	return nil
}

// namesWithout returns the names of metrics that others do not have.
func namesWithout(metrics, others map[string]float64) []string {
	names := slices.Sorted(maps.Keys(metrics))
	return slices.DeleteFunc(names, func(name string) bool {
		_, has := others[name]
		return has
	})
}

func measureEnds(ctx context.Context, a agent, pods int) (outcomes map[string]*outcome, metrics map[string]float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Minute, errors.New("not within 15 minutes"))
	defer cancel()
	readOnly, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	n, err := a.startNode(ctx, nil, "ends", "", fmt.Sprintf("readOnlyPort: %d\n", readOnly))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	e := &ending{node: n, agent: a, signs: filepath.Join(n.Dir(), "signs"), pods: pods, readOnly: readOnly}
	outcomes, err = e.run(ctx)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, n.Tail(10))
	}
	return outcomes, e.metrics, err
}

type ending struct {
	node     *stock.Node
	agent    agent
	signs    string // a directory in which containers leave files
	pods     int    // of each kind
	readOnly int
	metrics  map[string]float64 // of the kubelet that has seen the ends
}

// pod is one that notes each start, and ends with exit code 0 when there is a file or when it is asked to.
func (e *ending) pod(name string) *v1.Pod {
	pod := e.node.Pod(name, `echo started >>/signs/`+name+`; trap 'exit 0' TERM; while ! test -e /signs/end; do sleep 1; done`)
	grace := int64(300)
	pod.Spec.RestartPolicy, pod.Spec.TerminationGracePeriodSeconds = v1.RestartPolicyNever, &grace
	pod.Spec.Volumes = []v1.Volume{{Name: "signs", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: e.signs}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "signs", MountPath: "/signs"}}
	return pod
}

func (e *ending) run(ctx context.Context) (map[string]*outcome, error) {
	if err := os.Mkdir(e.signs, 0o777); err != nil {
		return nil, err
	}
	api := e.node.Admin().CoreV1().Pods(metav1.NamespaceDefault)
	for _, kind := range kinds {
		for i := range e.pods {
			if _, err := e.node.Create(ctx, e.pod(fmt.Sprintf("%s-%d", kind.name, i))); err != nil {
				return nil, err
			}
		}
	}
	e.say("pods start")
	if err := e.await(ctx, "are ready", func() (ready int, err error) {
		list, err := api.List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			if stock.Ready(&list.Items[i]) {
				ready++
			}
		}
		return ready, nil
	}); err != nil {
		return nil, err
	}
	// The last copy of each pod that the API server had. A deleted pod is gone in the end.
	last, err := followPods(ctx, e.node)
	if err != nil {
		return nil, err
	}
	// Pods in deletion: the kubelet knows, and cannot say how they end.
	for i := range e.pods {
		if err := api.Delete(ctx, fmt.Sprintf("deleted-%d", i), metav1.DeleteOptions{}); err != nil {
			return nil, err
		}
	}
	if err := e.node.API.Kill(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(e.signs, "end"), nil, 0o644); err != nil {
		return nil, err
	}
	e.say("pods end, the API server is down")
	// Both managers count the containers whose ends were reported to them.
	if err := e.await(ctx, "have ended, says the kubelet", func() (int, error) {
		counts, err := campaign.Scrape(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", e.readOnly))
		e.metrics = counts
		return int(counts["kubelet_terminated_containers_total"]), err
	}); err != nil {
		return nil, err
	}
	// The kubelet also removes the containers of the pods in deletion.
	if err := campaign.Pause(ctx, 20*time.Second); err != nil {
		return nil, err
	}
	e.node.Kubelet.Process().Kill()
	if err := e.prune(ctx); err != nil {
		return nil, err
	}
	e.say("the API server is back, and the kubelet")
	if err := e.node.API.Restart(ctx); err != nil {
		return nil, err
	}
	if last.again(ctx) != nil {
		return nil, errors.New("the watch cannot go on")
	}
	if err := e.node.Kubelet.Start(); err != nil {
		return nil, err
	}
	if err := e.node.Ready(ctx); err != nil {
		return nil, err
	}
	// Long enough for a pod that runs again to end once more: the file that asks for the end is still there.
	if err := stock.Await(ctx, func() error { return last.allOver(e.pods * len(kinds)) }); err != nil {
		return nil, err
	}
	if err := campaign.Pause(ctx, 15*time.Second); err != nil {
		return nil, err
	}
	return e.judge(last), nil
}

func (e *ending) say(what string) { fmt.Fprintf(campaign.Out, "%s: %s\n", e.agent.name, what) }

// await waits until it is so of each pod.
func (e *ending) await(ctx context.Context, what string, count func() (int, error)) error {
	want := e.pods * len(kinds)
	return stock.Await(ctx, func() error {
		n, err := count()
		if err != nil {
			return err
		}
		campaign.Out.Set("%s: %d of %d pods %s", e.agent.name, n, want, what)
		if n < want {
			return fmt.Errorf("%d of %d pods %s", n, want, what)
		}
		return nil
	})
}

// prune removes the containers of some pods from the runtime.
func (e *ending) prune(ctx context.Context) error {
	ctr := func(args ...string) (string, error) {
		output, err := exec.CommandContext(ctx, "ctr", append([]string{"-a", e.node.Containerd.Socket(), "-n", "k8s.io"}, args...)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, output)
		}
		return string(output), nil
	}
	list, err := ctr("containers", "list", "-q")
	if err != nil {
		return err
	}
	var pruned []string
	for _, id := range strings.Fields(list) {
		info, err := ctr("containers", "info", id)
		if err != nil {
			return err
		}
		if strings.Contains(info, `"io.kubernetes.pod.name": "pruned-`) {
			pruned = append(pruned, id)
		}
	}
	for _, id := range pruned {
		_, _ = ctr("tasks", "kill", "-s", "SIGKILL", id) // a sandbox may run
		if err := stock.Await(ctx, func() error {
			_, err := ctr("tasks", "delete", "-f", id)
			if err != nil && strings.Contains(err.Error(), "not found") {
				return nil
			}
			return err
		}); err != nil {
			return err
		}
		if _, err := ctr("containers", "delete", id); err != nil {
			return err
		}
	}
	e.say(fmt.Sprintf("%d containers and sandboxes removed from the runtime", len(pruned)))
	// The runtime's list of containers is in memory.
	e.node.Containerd.Process().Kill()
	return e.node.Containerd.Start(ctx)
}

func (e *ending) judge(last *lastCopies) map[string]*outcome {
	outcomes := map[string]*outcome{}
	for _, kind := range kinds {
		o := &outcome{reported: map[string]int{}}
		outcomes[kind.name] = o
		for i := range e.pods {
			name := fmt.Sprintf("%s-%d", kind.name, i)
			pod := last.get(name)
			starts, err := os.ReadFile(filepath.Join(e.signs, name))
			twice := err != nil || strings.Count(string(starts), "started") != 1
			if twice {
				o.again++
			}
			what, right := endOf(pod)
			o.reported[what]++
			if right && !twice {
				o.right++
			}
		}
	}
	return outcomes
}

// endOf is what the API says of the end of a pod, and whether it is its true one.
func endOf(pod *v1.Pod) (string, bool) {
	if len(pod.Status.ContainerStatuses) != 1 {
		return fmt.Sprintf("%s, no container", pod.Status.Phase), false
	}
	end := pod.Status.ContainerStatuses[0].State.Terminated
	if end == nil {
		return fmt.Sprintf("%s, container not ended", pod.Status.Phase), false
	}
	return fmt.Sprintf("%s, exit code %d, %s", pod.Status.Phase, end.ExitCode, end.Reason), pod.Status.Phase == v1.PodSucceeded && end.ExitCode == 0
}
