package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a simulation on a fake API server, in a synctest bubble.
type world struct {
	*testing.T
	api    *statustest.Server
	client kubernetes.Interface
	end    func() // ends the simulation, which may then be started again
}

func run(t *testing.T, nodes int, script string) *world {
	t.Helper()
	w := &world{T: t, api: statustest.New()}
	var err error
	if w.client, err = kubernetes.NewForConfig(w.api.Config()); err != nil {
		t.Fatal(err)
	}
	w.start(nodes, script)
	t.Cleanup(func() { w.end() })
	return w
}

// start runs a simulation on what the API server has.
func (w *world) start(nodes int, script string) {
	w.Helper()
	parsed, err := Parse([]byte(script))
	if err != nil {
		w.Fatal(err)
	}
	s, err := New(Options{Client: w.client, Nodes: nodes, Prefix: "sim-", Script: parsed, Seed: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	w.end = func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("Run: %v", err)
		}
	}
	w.settle(time.Second)
}

func (w *world) settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) bind(nodeName, name string, policy v1.RestartPolicy) *v1.Pod {
	return w.api.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec:       v1.PodSpec{NodeName: nodeName, RestartPolicy: policy, Containers: []v1.Container{{Name: "main", Image: "app"}}},
	})
}

func (w *world) ready(pod *v1.Pod) bool {
	c := podstatus.FindCondition(w.api.Pod(pod).Status.Conditions, v1.PodReady)
	return c != nil && c.Status == v1.ConditionTrue
}

func (w *world) state(pod *v1.Pod) v1.ContainerState {
	if statuses := w.api.Pod(pod).Status.ContainerStatuses; len(statuses) > 0 {
		return statuses[0].State
	}
	return v1.ContainerState{}
}

func (w *world) nodeReady(name string) v1.ConditionStatus {
	w.Helper()
	node, err := w.client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func TestPodsBehaveAsTheScriptSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, 2, `
pods:
- match: {name: slow-*}
  start: 20s
  ready: 10s
- match: {name: job-*}
  runs: 5s
- match: {name: crash-*}
  runs: 5s
  exitCode: 3
- match: {name: image-*}
  image: ErrImagePull
- match: {name: stops-*}
  stop: 10s
`)
		plain, slow, job := w.bind("sim-0", "plain", v1.RestartPolicyAlways), w.bind("sim-1", "slow-1", v1.RestartPolicyAlways), w.bind("sim-0", "job-1", v1.RestartPolicyNever)
		crash, image, stops := w.bind("sim-1", "crash-1", v1.RestartPolicyAlways), w.bind("sim-1", "image-1", v1.RestartPolicyAlways), w.bind("sim-1", "stops-1", v1.RestartPolicyAlways)
		failed := w.bind("sim-0", "crash-2", v1.RestartPolicyNever)
		w.settle(time.Second)
		if !w.ready(plain) || w.ready(slow) || w.api.Pod(plain).Status.PodIP == "" {
			t.Errorf("after 1 s: plain %v, slow %v, want ready and not", w.ready(plain), w.ready(slow))
		}
		if got := w.state(image); got.Waiting == nil || got.Waiting.Reason != "ErrImagePull" {
			t.Errorf("the pod without an image is %+v", got)
		}
		w.settle(6 * time.Second) // 7 s
		if got := w.api.Pod(job).Status.Phase; got != v1.PodSucceeded {
			t.Errorf("the job is %s, want Succeeded", got)
		}
		if got := w.api.Pod(failed).Status; got.Phase != v1.PodFailed || got.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
			t.Errorf("the failed pod is %s, want Failed with exit code 3", got.Phase)
		}
		if got := w.state(crash); got.Waiting == nil || got.Waiting.Reason != "CrashLoopBackOff" {
			t.Errorf("the crashing pod is %+v, want a back-off", got)
		}
		w.settle(15 * time.Second) // 22 s: it has been started at 16 s, and has ended at 21 s
		if got := w.api.Pod(crash).Status.ContainerStatuses[0].RestartCount; got != 1 {
			t.Errorf("%d restarts, want 1", got)
		}
		if w.state(slow).Running == nil || w.ready(slow) {
			t.Error("the slow pod should run and not be ready")
		}
		w.settle(10 * time.Second)
		if !w.ready(slow) {
			t.Error("the slow pod is not ready after 30 s")
		}
		w.api.DeleteGracefully("default", "stops-1", 30)
		w.settle(9 * time.Second)
		if got := w.api.Pod(stops); got == nil || w.ready(stops) {
			t.Error("the pod that takes 10 s to stop should be there and not ready")
		}
		w.settle(2 * time.Second)
		if w.api.Pod(stops) != nil {
			t.Error("the pod that takes 10 s to stop is still there")
		}
		for _, name := range []string{"plain", "slow-1", "crash-1", "image-1"} {
			w.api.DeleteGracefully("default", name, 30)
		}
		w.settle(2 * time.Second)
		for _, pod := range w.api.Pods() {
			if pod.DeletionTimestamp != nil {
				t.Errorf("%s is still there", pod.Name)
			}
		}
	})
}

func TestShareOfPodsFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, 10, `
pods:
- match: {share: 20%}
  flapEvery: 20s
  flapFor: 2s
`)
		var pods []*v1.Pod
		for i := range 200 {
			pods = append(pods, w.bind(fmt.Sprint("sim-", i%10), fmt.Sprint("pod-", i), v1.RestartPolicyAlways))
		}
		w.settle(time.Second)
		flapped := map[string]bool{}
		for range 80 {
			w.settle(500 * time.Millisecond)
			for _, pod := range pods {
				if !w.ready(pod) {
					flapped[pod.Name] = true
				}
			}
		}
		if len(flapped) < 15 || len(flapped) > 70 {
			t.Errorf("%d of 200 pods have flapped in 40 s, want about 40", len(flapped))
		}
	})
}

func TestOutagesAndEvictions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, 4, `
outages:
- {nodes: sim-0, at: 1m, for: 2m, kind: silent}
- {nodes: sim-1, at: 1m, for: 2m, kind: notReady}
evictions:
- {nodes: sim-2, at: 1m, pods: {name: victim-*}}
`)
		victim, spared := w.bind("sim-2", "victim-1", v1.RestartPolicyAlways), w.bind("sim-2", "spared", v1.RestartPolicyAlways)
		away := w.bind("sim-0", "away", v1.RestartPolicyAlways)
		w.settle(70 * time.Second)
		if got := w.api.Pod(victim).Status; got.Phase != v1.PodFailed || got.Reason != "Evicted" {
			t.Errorf("the victim is %s (%s), want Failed (Evicted)", got.Phase, got.Reason)
		}
		if !w.ready(spared) {
			t.Error("the other pod of the node is not ready")
		}
		if got := w.nodeReady("sim-1"); got != v1.ConditionFalse {
			t.Errorf("sim-1 is ready=%s, want False", got)
		}
		w.settle(30 * time.Second) // what was under way has ended
		w.api.ForgetRequests()
		late := w.bind("sim-0", "late", v1.RestartPolicyAlways)
		w.settle(time.Minute)
		for _, r := range w.api.Requests() {
			if strings.HasSuffix(r.Name, "sim-0") || r.PodName() == "late" || r.PodName() == "away" {
				t.Errorf("%s %s %s of a node that is silent", r.Verb, r.Resource, r.Name)
			}
		}
		w.settle(time.Minute)
		if !w.ready(late) || !w.ready(away) || w.nodeReady("sim-0") != v1.ConditionTrue || w.nodeReady("sim-1") != v1.ConditionTrue {
			t.Error("nodes and pods are not ready after the outage")
		}
	})
}

func TestMistakesOfAScriptAreNamed(t *testing.T) {
	for script, want := range map[string]string{
		"pods:\n- {strat: 5s}":                       "strat",
		"pods:\n- {start: 5}":                        "want a duration",
		"pods:\n- {match: {share: 5}}":               "want a share",
		"pods:\n- {match: {share: 0%}}":              "above 0%",
		"pods:\n- {exitCode: 1}":                     "pods[0].exitCode",
		"pods:\n- {runs: 1s, exitCode: 256}":         "between 0 and 255",
		"pods:\n- {flapEvery: 5s}":                   "pods[0].flapFor",
		"pods:\n- {start: -5s}":                      "pods[0].start",
		"pods:\n- {match: {name: '['}}":              "pods[0].match.name",
		"outages:\n- {at: 1s, kind: sleepy}":         "want silent or notReady",
		"evictions:\n- {nodes: '[', at: 1s}":         "evictions[0].nodes",
		"pods:\n- {start: 5s}\npods:\n- {start: 6s}": "pods",
		"nodes: {capacity: {cpu: lots}}":             "quantities",
	} {
		if _, err := Parse([]byte(script)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", script, err, want)
		}
	}
	for _, name := range Names() {
		if _, err := As(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := As("odd"); err == nil || !strings.Contains(err.Error(), "running, completing") {
		t.Errorf("an unknown behavior: %v", err)
	}
}

// A simulation that is started again goes on with the pods that the API shows: they have been running meanwhile.
func TestPodsGoOnAfterARestart(t *testing.T) {
	const script = "pods:\n" +
		"- {match: {name: slow}, start: 30s, ready: 10s}\n" +
		"- {match: {name: crash}, runs: 5s, exitCode: 1}\n" +
		"- {match: {name: job}, runs: 1m}\n" +
		"- {match: {name: done}, runs: 5s}\n"
	synctest.Test(t, func(t *testing.T) {
		w := run(t, 1, script)
		slow, crash := w.bind("sim-0", "slow", v1.RestartPolicyAlways), w.bind("sim-0", "crash", v1.RestartPolicyAlways)
		plain, done := w.bind("sim-0", "plain", v1.RestartPolicyAlways), w.bind("sim-0", "done", v1.RestartPolicyNever)
		w.settle(3 * time.Minute)
		job := w.bind("sim-0", "job", v1.RestartPolicyNever)
		w.settle(30 * time.Second)
		pods := []*v1.Pod{slow, crash, plain, done, job}
		before := map[string]v1.PodStatus{}
		for _, pod := range pods {
			before[pod.Name] = w.api.Pod(pod).Status
		}
		restarts := before["crash"].ContainerStatuses[0].RestartCount
		if !w.ready(slow) || !w.ready(plain) || restarts < 3 || before["done"].Phase != v1.PodSucceeded {
			t.Fatalf("before the restart: slow %t, plain %t, %d restarts, done %s", w.ready(slow), w.ready(plain), restarts, before["done"].Phase)
		}
		w.end()
		patches := w.api.Count("PATCH")
		w.start(1, script)
		for _, pod := range []*v1.Pod{slow, plain, done, job} {
			if got := w.api.Pod(pod).Status; !podrules.Equal(new(before[pod.Name]), &got) {
				t.Errorf("%s after the restart: got %+v, want it as before: %+v", pod.Name, got, before[pod.Name])
			}
		}
		if n := w.api.Count("PATCH") - patches; n > 3 { // the Node, its status, the pod that crashes
			t.Errorf("%d patches after a restart in which nothing happened", n)
		}
		w.settle(40 * time.Second)
		if got := w.api.Pod(job).Status.Phase; got != v1.PodSucceeded {
			t.Errorf("the job whose minute is over is %s, want Succeeded", got)
		}
		w.settle(15 * time.Minute)
		if got := w.api.Pod(crash).Status.ContainerStatuses[0]; got.RestartCount <= restarts || got.RestartCount > restarts+5 {
			t.Errorf("a crash loop went from %d restarts to %d in 15 minutes, want it to go on", restarts, got.RestartCount)
		}
	})
}
