//go:build real

package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/freeport"
)

// expected is what an example must reach, condition by condition, and then hold.
type expected struct {
	name       string
	phase      v1.PodPhase
	conditions map[v1.PodConditionType]string
	containers map[string]string // state by name, init containers included
}

func conditions(initialized, ready, containersReady string) map[v1.PodConditionType]string {
	return map[v1.PodConditionType]string{
		v1.PodReadyToStartContainers: "True",
		v1.PodInitialized:            initialized,
		v1.PodReady:                  ready,
		v1.ContainersReady:           containersReady,
		v1.PodScheduled:              "True",
	}
}

var examples = []expected{
	{"web", v1.PodRunning, conditions("True", "True", "True"), map[string]string{"server": "running"}},
	{"flapping", v1.PodRunning, conditions("True", "True", "True"), map[string]string{"main": "running"}},
	{"crashing", v1.PodRunning, conditions("True", "False:ContainersNotReady", "False:ContainersNotReady"),
		map[string]string{"main": "waiting(CrashLoopBackOff)"}},
	{"init-chain", v1.PodRunning, conditions("True", "True", "True"), map[string]string{
		"first": "terminated(0 Completed)", "sidecar": "running", "second": "terminated(0 Completed)", "main": "running"}},
	{"job", v1.PodSucceeded, map[v1.PodConditionType]string{
		v1.PodReadyToStartContainers: "False",
		v1.PodInitialized:            "True:PodCompleted",
		v1.PodReady:                  "False:PodCompleted",
		v1.ContainersReady:           "False:PodCompleted",
		v1.PodScheduled:              "True",
	}, map[string]string{"main": "terminated(0 Completed)"}},
}

func (e *expected) isReached(_ watch.EventType, pod *v1.Pod) bool {
	if pod.Status.Phase != e.phase || pod.Status.HostIP == "" {
		return false
	}
	for kind, want := range e.conditions {
		if condition(pod, kind) != want {
			return false
		}
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if stateWord(c.State) != e.containers[c.Name] {
			return false
		}
	}
	return len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses) == len(e.containers)
}

// Every example of examples/pods, as a static pod and through the API, reaches the status
// that its comment promises, and holds it while another one crashes twice and waits.
func TestExamplesReachAndHoldTheirStatus(t *testing.T) {
	server := shared.Server(t)
	const node = "examples"
	d := newDaemon(t, node).join(server)
	history := follow(t, server.Admin(), metav1.NamespaceDefault)
	for _, e := range examples {
		d.manifest(e.name+".yaml", patient(readExample(t, e.name+".yaml")))
		var pod v1.Pod
		if err := yaml.UnmarshalStrict([]byte(patient(readExample(t, "api/"+e.name+".yaml"))), &pod); err != nil {
			t.Fatal(err)
		}
		pod.Namespace, pod.Spec.NodeName = metav1.NamespaceDefault, node
		server.CreatePod(t, &pod)
	}
	d.start()
	for _, e := range examples {
		for _, name := range []string{e.name, e.name + "-" + node} {
			history.await(name, "the status that the example promises", e.isReached)
		}
	}
	// A second crash comes after a back-off of ten seconds: long enough to see who wavers.
	for _, name := range []string{"crashing", "crashing-" + node} {
		pod := history.await(name, "two restarts and the back-off after them", func(_ watch.EventType, pod *v1.Pod) bool {
			c := pod.Status.ContainerStatuses[0]
			return c.RestartCount >= 2 && c.State.Waiting != nil
		})
		last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
		if last == nil || last.ExitCode != 3 || !strings.Contains(last.Message, "out of luck") {
			t.Errorf("%s: got last termination %v, want exit code 3 and its last words", name, last)
		}
	}
	for _, e := range examples {
		if e.name == "crashing" || e.name == "flapping" {
			continue // which do not hold still, as promised
		}
		for _, name := range []string{e.name, e.name + "-" + node} {
			held(t, history, name, &e)
		}
	}
	d.stop()
}

var periods = regexp.MustCompile(`(?m)^( *)periodSeconds: \d+$`)

// patient is an example whose probes wait also for a machine under load.
func patient(example string) string {
	return periods.ReplaceAllString(example, "$0\n${1}timeoutSeconds: 60")
}

// held fails if a pod has left the status that it had reached.
func held(t *testing.T, h *history, name string, e *expected) {
	t.Helper()
	events, _ := h.of(name)
	reached := false
	for _, event := range events {
		pod := event.Object.(*v1.Pod)
		is := e.isReached(event.Type, pod)
		if reached && !is {
			t.Errorf("%s reached its status and left it:\n%s", name, story(events))
			return
		}
		reached = reached || is
	}
}

// readExample reads an example and has it use ports that are free.
func readExample(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../examples/pods", file))
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("18080", port, "18081", port).Replace(string(data))
	const server = "${exe%/*}/example-server"
	if strings.Contains(text, server) {
		text = strings.ReplaceAll(text, server, binaries.Path(t, binaries.ExampleServer))
	}
	return text
}
