//go:build real

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// exitOnFile is a script that ends with a code when a file appears.
func exitOnFile(file, code string) string {
	return "while ! test -e " + file + "; do sleep 0.05; done; exit " + code
}

// servingPod is ready as long as its probe says so, and counts its probes in a file.
func servingPod(namespace, node, probes, ready string) *v1.Pod {
	pod := shellPod(namespace, "serves", node, "while :; do sleep 0.1; done")
	pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{
		PeriodSeconds:    1,
		TimeoutSeconds:   60, // under load too
		FailureThreshold: 1,
		ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{
			Command: []string{"/bin/sh", "-c", "echo probe >> " + probes + "; test -e " + ready},
		}},
	}
	return pod
}

// probeCount is how often the probe has run.
func probeCount(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// statusd is killed while a container ends and another one serves: the end is reported
// with its exit code, and the other one was never touched and never unready.
func TestKilledStatusdLosesNothing(t *testing.T) {
	server := shared.Server(t)
	namespace, dir := server.Namespace(t), t.TempDir()
	d := newDaemon(t, "killed").join(server)
	d.manifest("static.yaml", staticManifest("static"))
	d.start()
	history := follow(t, server.Admin(), namespace)
	static := follow(t, server.Admin(), metav1.NamespaceDefault)
	goFile, probes, ready := filepath.Join(dir, "go"), filepath.Join(dir, "probes"), filepath.Join(dir, "ready")
	writeFile(t, ready, "")
	ending := shellPod(namespace, "ends", "killed", exitOnFile(goFile, "3"))
	ending.Spec.RestartPolicy = v1.RestartPolicyNever
	ending = server.CreatePod(t, ending)
	server.CreatePod(t, servingPod(namespace, "killed", probes, ready))
	history.await("ends", "that it runs", isReady)
	before := history.await("serves", "that it serves", isReady)
	staticBefore := static.await("static-killed", "that it runs", isReady)

	d.kill()
	writeFile(t, goFile, "")
	until(t, "the shim has recorded the end", func() bool {
		records, err := filepath.Glob(filepath.Join(d.podDirectory(ending), "containers", "*", "exit.json"))
		return err == nil && len(records) == 1
	})
	probed := probeCount(t, probes)
	d.start()

	ended := history.await("ends", "that its end is known", func(_ watch.EventType, pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
	if how := ended.Status.ContainerStatuses[0].State.Terminated; how == nil || how.ExitCode != 3 || how.Reason != "Error" {
		t.Errorf("got %v as the end of the container, want exit code 3", how)
	}
	until(t, "the new statusd has probed twice", func() bool { return probeCount(t, probes) >= probed+2 })
	unchanged(t, history, "serves", before)
	unchanged(t, static, "static-killed", staticBefore)
	d.stop()
}

// unchanged fails if a pod was ever unready, restarted or replaced since it was seen ready.
func unchanged(t *testing.T, h *history, name string, before *v1.Pod) {
	t.Helper()
	events, _ := h.of(name)
	since := false
	for _, event := range events {
		pod := event.Object.(*v1.Pod)
		since = since || pod.ResourceVersion == before.ResourceVersion
		if !since {
			continue
		}
		c := pod.Status.ContainerStatuses[0]
		if condition(pod, v1.PodReady) != "True" || !c.Ready || c.RestartCount != 0 || c.ContainerID != before.Status.ContainerStatuses[0].ContainerID || pod.UID != before.UID {
			t.Errorf("%s did not stay as it was when statusd was killed:\n%s", name, story(events))
			return
		}
	}
}

// While the API server is down, statusd goes on: it runs new static pods, sees ends and
// probes, says that it is alive, and delivers everything once the server is back.
func TestOutageOfTheAPIServer(t *testing.T) {
	server := controlplanetest.Start(t)
	namespace, dir := server.Namespace(t), t.TempDir()
	d := newDaemon(t, "outage").join(server)
	d.start()
	history := follow(t, server.Admin(), namespace)
	goFile, probes, ready := filepath.Join(dir, "go"), filepath.Join(dir, "probes"), filepath.Join(dir, "ready")
	writeFile(t, ready, "")
	ending := shellPod(namespace, "ends", "outage", exitOnFile(goFile, "4"))
	ending.Spec.RestartPolicy = v1.RestartPolicyNever
	server.CreatePod(t, ending)
	server.CreatePod(t, servingPod(namespace, "outage", probes, ready))
	history.await("ends", "that it runs", isReady)
	history.await("serves", "that it serves", isReady)
	until(t, "statusd is ready", func() bool { code, _, _ := d.get("/readyz"); return code == http.StatusOK })

	server.Kill(t)
	writeFile(t, goFile, "")
	if err := os.Remove(ready); err != nil {
		t.Fatal(err)
	}
	d.manifest("static.yaml", staticManifest("static"))
	until(t, "statusd sees the end of a container", func() bool { pod, _ := d.pod("ends"); return pod.Status.Phase == v1.PodFailed })
	until(t, "statusd sees a pod that is not ready any more", func() bool {
		pod, ok := d.pod("serves")
		return ok && condition(&pod, v1.PodReady) != "True"
	})
	until(t, "statusd starts a static pod", func() bool {
		pod, ok := d.pod("static-outage")
		return ok && condition(&pod, v1.PodReady) == "True"
	})
	until(t, "statusd knows of the outage", func() bool { code, _, _ := d.get("/readyz"); return code == http.StatusServiceUnavailable })
	if code, body, err := d.get("/livez"); code != http.StatusOK {
		t.Errorf("livez answers %d %q (%v) in an outage, want 200: a restart would not end it", code, body, err)
	}

	server.Restart(t)
	history = follow(t, server.Admin(), namespace)
	static := follow(t, server.Admin(), metav1.NamespaceDefault)
	ended := history.await("ends", "that its end is known", func(_ watch.EventType, pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
	if how := ended.Status.ContainerStatuses[0].State.Terminated; how == nil || how.ExitCode != 4 {
		t.Errorf("got %v as the end of the container, want exit code 4", how)
	}
	history.await("serves", "that it is not ready", func(_ watch.EventType, pod *v1.Pod) bool {
		return condition(pod, v1.PodReady) == "False:ContainersNotReady"
	})
	static.await("static-outage", "that the static pod has a mirror", isReady)
	d.stop()
}
