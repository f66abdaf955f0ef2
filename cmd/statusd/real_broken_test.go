//go:build real

package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/freeport"
)

// testdata/broken has what statusd, kubectl and k8sgpt say about pods that are broken. The test runs each pod
// and compares; this records the files and docs/evidence/broken-pods.md again, and needs kubectl:
//
//	go test -tags real ./cmd/statusd -run TestBrokenPods -args -record
var record = flag.Bool("record", false, "record testdata/broken and the table of docs/evidence/broken-pods.md")

// brokenPod is a pod of examples and when there is something to say about it.
type brokenPod struct {
	file string // below examples
	// settled is in the explanation when it is worth recording.
	settled string
	// breaks does to the pod what its manifest cannot.
	breaks func(*brokenNode, *v1.Pod)
}

var brokenPods = []brokenPod{
	{"broken/bad-command.yaml", "next start in", nil},
	{"broken/missing-file.yaml", "next start in", nil},
	{"broken/wrong-port.yaml", "has failed", nil},
	{"broken/slow-start.yaml", "has failed", nil},
	{"broken/out-of-memory.yaml", "next start in", nil},
	{"broken/stuck-prestop.yaml", "preStop hook", (*brokenNode).deletePod},
	{"broken/init-loop.yaml", "next start in", nil},
	{"broken/gate-never-set.yaml", "was never set", nil},
	{"broken/rejected.yaml", "rejected", nil},
	{"broken/deadline.yaml", "deadline", nil},
	{"broken/foreign-writer.yaml", "painter", (*brokenNode).paint},
	{"pods/api/web.yaml", "is Ready", nil},
	{"pods/api/flapping.yaml", "has failed", nil},
	{"pods/api/crashing.yaml", "next start in", nil},
	{"pods/api/init-chain.yaml", "is Ready", nil},
	{"pods/api/job.yaml", "succeeded", nil},
	{"broken/server-down.yaml", "tries failed", (*brokenNode).stopServer}, // the last, since the others need it
}

// brokenNode is a node of its own cluster on which pods break.
type brokenNode struct {
	*daemon
	server  *controlplanetest.Server
	history *history
}

// Each pod of examples is explained as testdata/broken has it, whatever the times, durations and counts.
func TestBrokenPodsAreExplainedAsDocumented(t *testing.T) {
	server := controlplanetest.Start(t)
	n := &brokenNode{newDaemon(t, "local").join(server), server, nil}
	n.history = follow(t, server.Admin(), metav1.NamespaceDefault)
	n.start()
	pods := map[string]*v1.Pod{}
	for _, b := range brokenPods {
		pod := readPodExample(t, b.file)
		pods[b.file] = server.CreatePod(t, pod)
	}
	for _, b := range brokenPods {
		pod := pods[b.file]
		if b.breaks != nil {
			b.breaks(n, pod)
		}
		if *record {
			n.recordTranscript(t, b, pod).write(t, pod.Name)
			continue
		}
		want := readTranscript(t, pod.Name)
		n.awaitSaid(t, pod.Name+": statusd explain", want.sentence, func() string { return n.why(pod.Name) })
		n.awaitSaid(t, pod.Name+": k8sgpt", want.k8sgpt, func() string { return n.k8sgpt(pod.Name) })
	}
	if *record {
		writeBrokenPage(t)
	}
}

// awaitSaid waits until something is said as documented.
func (n *brokenNode) awaitSaid(t *testing.T, who, want string, ask func() string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s said last:\n%s\nwant, but for numbers:\n%s", who, last, want)
		}
	}()
	until(t, who+" as in testdata/broken", func() bool {
		last = ask()
		return alike(last) == alike(want)
	})
}

var (
	clock    = regexp.MustCompile(`\d\d:\d\d:\d\d`)
	duration = regexp.MustCompile(`(\d+ (h|min|s|ms)\b ?)+`)
	number   = regexp.MustCompile(`\d+`)
	counted  = regexp.MustCompile(`# times?\b|once|twice`)
)

// alike leaves out what differs from run to run.
func alike(text string) string {
	text = clock.ReplaceAllString(text, "#")
	text = duration.ReplaceAllString(text, "# ")
	text = number.ReplaceAllString(text, "#")
	text = counted.ReplaceAllString(text, "# times")
	text = strings.ReplaceAll(text, "# tries failed", "# try failed")
	text = strings.ReplaceAll(text, "# restarts", "# restart")
	return strings.Join(strings.Fields(text), " ")
}

// why is what statusd says of a pod.
func (n *brokenNode) why(name string) string {
	sentence, err := explained(n.t, "--server", "http://"+n.config.HealthzBindAddress, "-n", metav1.NamespaceDefault, name)
	if err != nil { // it may not be up yet
		return err.Error()
	}
	return strings.TrimSpace(sentence)
}

func (n *brokenNode) deletePod(pod *v1.Pod) {
	n.history.await(pod.Name, "that it runs", isReady)
	if err := n.server.Admin().CoreV1().Pods(pod.Namespace).Delete(n.t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// paint is another writer, which says that a pod is not ready whenever it is.
func (n *brokenNode) paint(pod *v1.Pod) {
	client := n.server.Admin()
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Painted"}]}}`)
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			events, more := n.history.of(pod.Name)
			if len(events) > 0 && isReady("", events[len(events)-1].Object.(*v1.Pod)) {
				// The server may be stopped; the next change comes when it is back.
				_, _ = client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "painter"}, "status")
			}
			select {
			case <-ctx.Done():
				return
			case <-more:
			}
		}
	}()
	n.t.Cleanup(func() { cancel(); <-done })
}

// stopServer leaves the pod alone on its node: of the pods that wait in an outage, the server is only tried with a few.
func (n *brokenNode) stopServer(pod *v1.Pod) {
	n.history.await(pod.Name, "that it runs", isReady)
	pods := n.server.Admin().CoreV1().Pods(pod.Namespace)
	list, err := pods.List(n.t.Context(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, other := range list.Items {
		if other.Name == pod.Name {
			continue
		}
		if err := pods.Delete(n.t.Context(), other.Name, *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
			n.t.Fatal(err)
		}
	}
	until(n.t, "that the pod is alone", func() bool {
		for _, other := range list.Items {
			if _, there := n.pod(other.Name); there != (other.Name == pod.Name) {
				return false
			}
		}
		return true
	})
	n.server.Kill(n.t)
	writeFile(n.t, filepath.Join(n.podDirectory(pod), "volumes", "work", "stop"), "")
}

// k8sgpt is what the pod analyzer of k8sgpt says by the rules that docs/evidence/broken-pods.md lists.
func (n *brokenNode) k8sgpt(name string) string {
	client := n.server.Admin()
	pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(n.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return "nothing: the API server does not answer"
	}
	found := unschedulable(pod)
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if said := analyzed(pod, &list[i], newestEvent(n.t, client, name)); said != "" {
				found = append(found, said)
			}
		}
	}
	if len(found) == 0 {
		return "nothing"
	}
	return strings.Join(found, "; ")
}

func unschedulable(pod *v1.Pod) (found []string) {
	for _, c := range pod.Status.Conditions {
		if pod.Status.Phase == v1.PodPending && c.Type == v1.PodScheduled && c.Reason == v1.PodReasonUnschedulable && c.Message != "" {
			found = append(found, c.Message)
		}
	}
	return found
}

var waitingErrors = regexp.MustCompile("^(CrashLoopBackOff|ImagePullBackOff|CreateContainerConfigError|PreCreateHookError|CreateContainerError|" +
	"PreStartHookError|RunContainerError|ImageInspectError|ErrImagePull|ErrImageNeverPull|InvalidImageName)$")

// analyzed is what the rules say of one container.
func analyzed(pod *v1.Pod, c *v1.ContainerStatus, newest v1.Event) string {
	waiting, ended, last := c.State.Waiting, c.State.Terminated, c.LastTerminationState.Terminated
	switch {
	case waiting != nil && waiting.Reason == "ContainerCreating" && pod.Status.Phase == v1.PodPending:
		if newest.Reason == "FailedCreatePodSandBox" || newest.Reason == "FailedMount" {
			return newest.Message
		}
	case waiting != nil && waiting.Reason == "CrashLoopBackOff" && last != nil:
		return fmt.Sprintf("the last termination reason is %s container=%s pod=%s", last.Reason, c.Name, pod.Name)
	case waiting != nil && waitingErrors.MatchString(waiting.Reason):
		return waiting.Message
	case ended != nil && ended.ExitCode != 0:
		return fmt.Sprintf("the termination reason is %s exitCode=%d container=%s pod=%s", ended.Reason, ended.ExitCode, c.Name, pod.Name)
	case waiting == nil && ended == nil && !c.Ready && pod.Status.Phase == v1.PodRunning && newest.Reason == "Unhealthy":
		return newest.Message
	}
	return ""
}

func newestEvent(t *testing.T, client kubernetes.Interface, name string) (newest v1.Event) {
	t.Helper()
	list, err := client.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		return v1.Event{}
	}
	for _, e := range list.Items {
		if newest.Name == "" || e.LastTimestamp.After(newest.LastTimestamp.Time) {
			newest = e
		}
	}
	return newest
}

// readPodExample reads an example and has it use ports that are free.
func readPodExample(t *testing.T, file string) *v1.Pod {
	t.Helper()
	text := readExample(t, filepath.Join("..", file))
	for _, port := range []string{"18082", "18083"} {
		_, free, err := net.SplitHostPort(freeport.Address(t))
		if err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, port, free)
	}
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	pod.Namespace, pod.Spec.NodeName = metav1.NamespaceDefault, "local" // there is no scheduler here
	return pod
}

func (n *brokenNode) recordTranscript(t *testing.T, b brokenPod, pod *v1.Pod) transcript {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience / 3); ; <-ticker.C {
		s := transcript{n.why(pod.Name), n.describe(t, pod.Name), n.k8sgpt(pod.Name)}
		if strings.Contains(s.sentence, b.settled) && !strings.Contains(s.sentence, "on its way") {
			return s
		}
		if time.Now().After(end) {
			t.Errorf("%s: want %q in the explanation\n%s", pod.Name, b.settled, s.sentence)
			return s
		}
	}
}

// describe is what kubectl describe shows that bears on the state of a pod.
func (n *brokenNode) describe(t *testing.T, name string) string {
	t.Helper()
	kubectl, err := filepath.Abs("../../bin/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if !exists(kubectl) {
		t.Fatal("bin/kubectl is missing: make kubectl")
	}
	cmd := exec.Command(kubectl, "--kubeconfig", n.server.Process.AdminKubeconfig(), "--request-timeout=5s", "describe", "pod", name)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out))
	}
	var lines []string
	volumes, events := false, false
	telling := regexp.MustCompile(`^(Status|Reason|Message|Conditions|Init Containers|Containers|Readiness Gates|Termination Grace Period|  [a-z-]+:$|    (State|Last State|  Reason|  Message|  Exit Code|Ready|Restart Count):|  (Initialized|Ready|ContainersReady|Type|\S+/\S+) )`)
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n ")
		volumes = volumes || strings.HasPrefix(line, "Volumes:")
		events = events || strings.HasPrefix(line, "Events:")
		if events || !volumes && telling.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
