//go:build real

package status_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// agentArgument makes this test binary be a node agent that is there to be killed.
const agentArgument = "agent-to-be-killed"

// runAsAgent is the agent of the crash test: it reports that the pod failed with exit code
// 3, says so on standard output once the manager has it, and then waits to be killed.
func runAsAgent() bool {
	if len(os.Args) < 2 || os.Args[1] != agentArgument {
		return false
	}
	if err := agentMain(os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	return true
}

func agentMain(kubeconfig, journalPath, podFile string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(podFile)
	if err != nil {
		return err
	}
	pod := &v1.Pod{}
	if err := pod.Unmarshal(data); err != nil {
		return err
	}
	j, err := journal.Open(journalPath, journal.Options{NodeName: "crash"})
	if err != nil {
		return err
	}
	table := pods.New()
	table.Set(pod)
	manager, err := status.New(status.Options{Client: status.NewClient(client.CoreV1(), "crash"), Pods: table, Journal: j})
	if err != nil {
		return err
	}
	go manager.Run(context.Background())
	if _, err := manager.SetPodStatus(pod, endedStatus(pod, 3)); err != nil {
		return err
	}
	fmt.Println("stored")
	select {}
}

// #37447, virtual-kubelet #762: the server is down, the pod fails, the agent is killed. When
// both are back, the API says how the pod ended, and the pod is not started again.
func TestRealServer_AFinalStatusSurvivesTheAgentsDeathDuringAnOutage(t *testing.T) {
	server := controlplanetest.Start(t)
	watcher := startNode(t, server, "crash")
	ns := server.Namespace(t)
	pod := watcher.create(ns, "job", func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever })
	watcher.set(pod, runningStatus(pod, true))
	watcher.flush()
	pod = server.GetPod(t, ns, "job")
	watcher.stop()
	kubeconfig, err := server.Process.NodeKubeconfig("crash")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	podFile, journalPath := filepath.Join(dir, "pod"), filepath.Join(dir, "journal.db")
	data, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(podFile, data, 0o600); err != nil {
		t.Fatal(err)
	}
	server.Kill(t)

	agent := exec.CommandContext(t.Context(), os.Args[0], agentArgument, kubeconfig, journalPath, podFile)
	output, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(output).ReadString('\n')
	if strings.TrimSpace(said) != "stored" {
		t.Fatalf("the agent said %q (%v), want that it stored the status", said, err)
	}
	if err := agent.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	agent.Wait()

	server.Restart(t)
	if got := server.GetPod(t, ns, "job"); got.Status.Phase != v1.PodRunning {
		t.Fatalf("before the agent is back the API says %s; the test proves nothing", got.Status.Phase)
	}
	j, err := journal.Open(journalPath, journal.Options{NodeName: "crash"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	n := startNode(t, server, "crash", func(o *status.Options) { o.Journal = j })
	// An agent that asks the manager first sees that there is nothing to start.
	if got, ok := n.manager.GetPodStatus(pod.UID); !ok || got.Phase != v1.PodFailed {
		t.Errorf("the new agent would start the pod again: its cache says %s, %v", got.Phase, ok)
	}
	if _, err := n.manager.SetPodStatus(pod, runningStatus(pod, true)); err == nil {
		t.Error("the pod was reported running again without an error")
	}
	n.flush()
	got := server.GetPod(t, ns, "job")
	if got.Status.Phase != v1.PodFailed || got.Status.ContainerStatuses[0].State.Terminated == nil || got.Status.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
		t.Errorf("the API says %s, %+v; want Failed with exit code 3", got.Status.Phase, got.Status.ContainerStatuses)
	}
	if kept := j.Finals(); len(kept) != 1 {
		t.Errorf("the journal has %d final statuses, want that of the pod, as long as the pod is there", len(kept))
	}
	n.manager.Forget(pod.UID)
	n.stop()
	if left := j.Finals(); len(left) != 0 {
		t.Errorf("the journal still holds %d final statuses", len(left))
	}
}
