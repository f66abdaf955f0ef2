//go:build real

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime/function"
	"github.com/statusd/statusd/test/background"
	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/freeport"
	"github.com/statusd/statusd/test/stock"
	"github.com/statusd/statusd/test/testlog"
)

var (
	stormTime  = flag.Duration("storm", 20*time.Second, "how long pods of Deployments that cannot run are counted")
	stormStock = flag.String("storm-beside", "", "the file for a table of the same Deployments on a stock kubelet in the same run; root, containerd, runc")
)

// A ReplicaSet replaces a pod that has failed at once. For no kind of Deployment that this node cannot run are more pods made
// than for a stock kubelet that has one container wait: within ten minutes at most 12 (make storm, which has a stock kubelet
// beside it).
func TestDeploymentsThatCannotRun_MakeNoStorm(t *testing.T) {
	server := controlplanetest.StartCluster(t, 0)
	const node = "storm"
	d := newDaemon(t, node).join(server)
	d.start()
	deployments := readDeployments(t, "../../examples/storm/deployments.yaml")
	pods := deploy(t, server, node, deployments, false)
	var beside *history
	if *stormStock != "" {
		stock.Start(t, stock.Options{Name: "storm-stock", API: server.Process})
		beside = deploy(t, server, "storm-stock", deployments, true)
	}
	waits := map[string]string{
		"wrong-image": runtimeWaiting("ErrImagePull"), "invalid-image": runtimeWaiting("InvalidImageName"), "missing-config-map": runtimeWaiting("CreateContainerConfigError"),
		"sysctl": runtimeWaiting("CreateContainerConfigError"), "host-aliases": "running", "dns": "running", "no-program": runtimeWaiting("RunContainerError"), "crashing": runtimeWaiting("CrashLoopBackOff"),
	}
	for app, want := range waits {
		pods.awaitAny(app, want, func(pod *v1.Pod) bool {
			return len(pod.Status.ContainerStatuses) == 1 && stateWord(pod.Status.ContainerStatuses[0].State) == want
		})
	}
	<-time.After(*stormTime) // what is measured is how many pods are made in it
	made := pods.made()
	for app, pods := range made {
		t.Logf("%-20s %d pods", app, len(pods))
		if len(pods) > 12 {
			t.Errorf("%s: %d pods were made in %s, want at most 12", app, len(pods), *stormTime)
		}
	}
	if beside != nil {
		writeStorm(t, *stormStock, deployments, made, beside.made())
	}
}

// deploy creates Deployments for one node, in a namespace of their own, and follows their pods.
func deploy(t *testing.T, server *controlplanetest.Server, node string, deployments []*appsv1.Deployment, stockNode bool) *history {
	t.Helper()
	namespace := server.Namespace(t)
	pods := follow(t, server.Admin(), namespace)
	for _, deployment := range deployments {
		deployment := deployment.DeepCopy()
		template := &deployment.Spec.Template.Spec
		if template.NodeName != "" {
			template.NodeName = node
		} else {
			template.NodeSelector = map[string]string{v1.LabelHostname: node}
		}
		if stockNode { // which has no network plugin: only pods on the network of the machine get a sandbox
			template.HostNetwork = true
		}
		if template.Containers[0].Image == "host" {
			template.Containers[0].ImagePullPolicy = v1.PullIfNotPresent // the stock node has it, and there is no registry
		}
		if _, err := server.Admin().AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", deployment.Name, err)
		}
	}
	return pods
}

// made are the pods that there were, by app and name, each as it was last seen.
func (h *history) made() map[string]map[string]*v1.Pod {
	made := map[string]map[string]*v1.Pod{}
	events, _ := h.all()
	for _, event := range events {
		if pod, ok := event.Object.(*v1.Pod); ok {
			if made[pod.Labels["app"]] == nil {
				made[pod.Labels["app"]] = map[string]*v1.Pod{}
			}
			made[pod.Labels["app"]][pod.Name] = pod
		}
	}
	return made
}

// writeStorm writes how many pods were made on both nodes, and what they last said.
func writeStorm(t *testing.T, file string, deployments []*appsv1.Deployment, made, beside map[string]map[string]*v1.Pod) {
	t.Helper()
	var page strings.Builder
	fmt.Fprintf(&page, `# Deployments that cannot run, beside a stock kubelet

`+"`make storm`"+` writes this page: the Deployments of [examples/storm](../../examples/storm/deployments.yaml) on a node of statusd and, in the same run and cluster, on
a stock kubelet 1.36.3 with containerd and runc, for %s. A ReplicaSet replaces a pod that has failed at once, so what counts is how many pods are made for each.

Pods of the stock node have `+"`hostNetwork: true`"+` in addition, because the node has no network plugin, and its image "host" is a busybox. A container may be between two states of a crash loop
when the run ends.

| Deployment | pods on statusd | what they last said | pods on the stock kubelet | what they last said |
|---|--:|---|--:|---|
`, *stormTime)
	for _, deployment := range deployments {
		name := deployment.Name
		fmt.Fprintf(&page, "| %s | %d | %s | %d | %s |\n", name, len(made[name]), said(made[name]), len(beside[name]), said(beside[name]))
	}
	if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// said are the last states of pods, in the words of the API, the most frequent first.
func said(pods map[string]*v1.Pod) string {
	count := map[string]int{}
	for _, pod := range pods {
		count[says(pod)]++
	}
	states := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	for i, state := range states {
		if n := count[state]; n > 1 {
			states[i] = fmt.Sprintf("%s (%d)", state, n)
		}
	}
	return strings.Join(states, ", ")
}

func says(pod *v1.Pod) string {
	switch {
	case pod.Status.Reason != "":
		return string(pod.Status.Phase) + ": " + pod.Status.Reason
	case len(pod.Status.ContainerStatuses) > 0:
		return stateWord(pod.Status.ContainerStatuses[0].State)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return string(pod.Status.Phase) + ": " + c.Reason
		}
	}
	return string(pod.Status.Phase)
}

func runtimeWaiting(reason string) string { return "waiting(" + reason + ")" }

// all are the events so far, and a channel that is closed when there are more.
func (h *history) all() (events []watch.Event, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events[:len(h.events):len(h.events)], h.changed
}

// awaitAny waits for an event of a pod of an app that is as wanted.
func (h *history) awaitAny(app, what string, wanted func(*v1.Pod) bool) *v1.Pod {
	h.t.Helper()
	late := time.After(patience)
	for {
		events, more := h.all()
		var last []watch.Event
		for _, event := range events {
			if pod, ok := event.Object.(*v1.Pod); ok && pod.Labels["app"] == app {
				if last = append(last, event); wanted(pod) {
					return pod
				}
			}
		}
		select {
		case <-more:
		case <-late:
			h.t.Fatalf("pods of %s: waited in vain: %s\n%s", app, what, story(last))
		}
	}
}

func readDeployments(t *testing.T, file string) (all []*appsv1.Deployment) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		deployment := &appsv1.Deployment{}
		if err := decoder.Decode(deployment); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if deployment.Name != "" {
			all = append(all, deployment)
		}
	}
}

// ordinary is a Deployment as people write it: limits, a probe, variables of a config map, a security context, a port, and
// the token that each API server mounts.
func ordinary(node string, port int32, command ...string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{
					NodeSelector:    map[string]string{v1.LabelHostname: node},
					Tolerations:     []v1.Toleration{{Key: run.ProcessTaint, Operator: v1.TolerationOpExists}, {Key: agent.EmbeddedTaint, Operator: v1.TolerationOpExists}},
					SecurityContext: &v1.PodSecurityContext{SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}},
					Containers: []v1.Container{{
						Name: "web", Image: "host", Command: command,
						EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}},
						Ports:   []v1.ContainerPort{{ContainerPort: port}},
						Resources: v1.ResourceRequirements{
							Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m"), v1.ResourceMemory: resource.MustParse("16Mi")},
							Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("256Mi")},
						},
						ReadinessProbe:  &v1.Probe{PeriodSeconds: 1, TimeoutSeconds: 60, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(port)}}},
						SecurityContext: &v1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}},
					}},
				},
			},
		},
	}
}

// The most ordinary Deployment becomes Ready, and its rolling update ends, on the process runtime and on a function.
func TestAnOrdinaryDeploymentIsReadyAndUpdated(t *testing.T) {
	server := controlplanetest.StartCluster(t, 0)
	for name, start := range map[string]func(t *testing.T, node string) *appsv1.Deployment{
		"process": func(t *testing.T, node string) *appsv1.Deployment {
			newDaemon(t, node).join(server).start()
			port := freePort(t)
			// Both releases are on the network of the machine: the second gets the port when the first has ended.
			return ordinary(node, port, "/bin/sh", "-c", fmt.Sprintf("until %s --address 0.0.0.0:%d; do sleep 1; done", binaries.Path(t, binaries.ExampleServer), port))
		},
		"function": func(t *testing.T, node string) *appsv1.Deployment {
			runFunctions(t, server, node)
			return ordinary(node, freePort(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := start(t, name)
			namespace := server.Namespace(t)
			settings := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"GREETING": "hello"}}
			if _, err := server.Admin().CoreV1().ConfigMaps(namespace).Create(t.Context(), settings, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			deployments := server.Admin().AppsV1().Deployments(namespace)
			if _, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			updates, err := deployments.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer updates.Stop()
			awaitRollout(t, updates, "ready")
			patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`)
			if _, err := deployments.Patch(t.Context(), "web", "application/strategic-merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitRollout(t, updates, "updated")
			pods, err := server.Admin().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(pods.Items) > 2 {
				t.Errorf("got %d pods (%v), want one for each release at most", len(pods.Items), err)
			}
		})
	}
}

func freePort(t *testing.T) int32 {
	t.Helper()
	_, number, err := net.SplitHostPort(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(port)
}

func awaitRollout(t *testing.T, updates watch.Interface, what string) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case event := <-updates.ResultChan():
			d, ok := event.Object.(*appsv1.Deployment)
			if ok && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.AvailableReplicas == 1 && d.Status.Replicas == 1 {
				if _, restarted := d.Spec.Template.Annotations["release"]; restarted == (what == "updated") {
					return
				}
			}
		case <-late:
			t.Fatalf("the deployment is not %s", what)
		}
	}
}

// runFunctions is a node like examples/node: its pods listen at addresses of their own.
func runFunctions(t *testing.T, server *controlplanetest.Server, name string) {
	t.Helper()
	rt, err := function.New(function.Options{
		IPs: function.Loopback,
		Run: func(ctx context.Context, call function.Call) error {
			listener, err := net.Listen("tcp", net.JoinHostPort(function.Loopback(call.Pod)[0], strconv.Itoa(int(call.Container.Ports[0].ContainerPort))))
			if err != nil {
				return err
			}
			defer listener.Close()
			go answerAll(listener)
			<-ctx.Done()
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	config := agent.Embedded(name)
	config.StateDir = t.TempDir()
	config.Eviction.Hard = eviction.Disabled()
	node, err := agent.New(config, agent.Options{Runtime: rt, RESTConfig: server.NodeConfig(t, name), Logger: testlog.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, node.Run)
}

// answerAll answers every request with 200 until the listener is closed.
func answerAll(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		}()
	}
}
