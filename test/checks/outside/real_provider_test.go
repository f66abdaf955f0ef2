//go:build real

package outside

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

// longestProvider is how many lines the program around a provider may have.
const longestProvider = 30

// largestProvider is how many bytes the program may have, with symbols.
const largestProvider = 52 << 20

// A program of another module is a node of a provider of virtual-kubelet's mock shape: 20 pods with deletes, failures and
// kill -9, and what happened while it was dead.
func TestProviderOutsideThisModule(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "examples", "provider", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines > longestProvider {
		t.Errorf("examples/provider/main.go has %d lines, want at most %d", lines, longestProvider)
	}
	dir, state, server, node := scratch(t, "provider", source), t.TempDir(), shared.Server(t), "outside-provider"
	if program, err := os.Stat(filepath.Join(dir, "program")); err != nil || program.Size() > largestProvider {
		t.Errorf("the program has %d bytes (%v), want at most %d: the linker keeps all methods if one is looked up by a name that is no constant", program.Size(), err, largestProvider)
	}
	namespace := server.Namespace(t)
	kubeconfig, err := server.Process.NodeKubeconfig(node)
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	run := func() *exec.Cmd {
		command := exec.Command(filepath.Join(dir, "program"), kubeconfig, node, state)
		command.Stdout, command.Stderr = &output, &output
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		return command
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("provider:\n%s", output.String())
		}
	})
	ctx, cancel := patience.Context(t)
	defer cancel()
	pods := server.Admin().CoreV1().Pods(namespace)
	// until looks at all pods of the namespace until they are as wanted.
	until := func(want string, is func(map[string]*v1.Pod) bool) {
		t.Helper()
		for {
			list, err := pods.List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatalf("not so in time: %s: %v", want, err)
			}
			seen := map[string]*v1.Pod{}
			for i := range list.Items {
				seen[list.Items[i].Name] = &list.Items[i]
			}
			if is(seen) {
				return
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("not so in time: %s\n%v", want, phases(seen))
			}
		}
	}
	create := func(name, exit string) {
		pod := controlplanetest.Pod(namespace, name, node)
		pod.Spec.RestartPolicy, pod.Annotations = v1.RestartPolicyNever, map[string]string{"example.com/exit": exit}
		server.CreatePod(t, pod)
	}
	remove := func(name string, grace int64) {
		if err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
	}
	ready := func(pod *v1.Pod) bool {
		if pod == nil {
			return false
		}
		c := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady)
		return c != nil && c.Status == v1.ConditionTrue
	}

	first := run()
	for i := range 20 {
		exit := ""
		switch i {
		case 0:
			exit = string(v1.PodFailed)
		case 1:
			exit = string(v1.PodSucceeded)
		}
		create(fmt.Sprint("p", i), exit)
	}
	until("18 pods are ready and two have ended", func(seen map[string]*v1.Pod) bool {
		for i := 2; i < 20; i++ {
			if !ready(seen[fmt.Sprint("p", i)]) {
				return false
			}
		}
		return seen["p0"].Status.Phase == v1.PodFailed && seen["p1"].Status.Phase == v1.PodSucceeded
	})
	remove("p2", 3600)
	until("p2 is gone", func(seen map[string]*v1.Pod) bool { return seen["p2"] == nil })

	remove("p3", 3600)
	if err := first.Process.Kill(); err != nil { // kill -9
		t.Fatal(err)
	}
	_ = first.Wait()
	for _, name := range []string{"p4", "p5"} {
		remove(name, 3600)
	}
	remove("p6", 0) // forced
	create("p6", "")
	create("p20", string(v1.PodSucceeded))
	began := time.Now()
	second := run()
	until("all pods are as they should be", func(seen map[string]*v1.Pod) bool {
		for i := 6; i < 20; i++ {
			if !ready(seen[fmt.Sprint("p", i)]) {
				return false
			}
		}
		return seen["p3"] == nil && seen["p4"] == nil && seen["p5"] == nil && seen["p20"].Status.Phase == v1.PodSucceeded && len(seen) == 17
	})
	t.Logf("converged %v after the start", time.Since(began).Round(time.Millisecond))
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

func phases(seen map[string]*v1.Pod) (all []string) {
	for name, pod := range seen {
		all = append(all, name+" "+string(pod.Status.Phase))
	}
	return all
}
