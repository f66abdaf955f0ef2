package runtimetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/statusd/statusd/runtime"
)

// cleanUpTime is what a test leaves of the time of its package to end its containers, if what must happen does not.
const cleanUpTime = 10 * time.Second

// patience is how long a test waits for what must happen within a second on an idle machine. Without a bound of its own the first test that fails would use
// up the time of its package, and each test after it would fail too.
const patience = 3 * time.Minute

// deadline is when a test that waits now gives up. It only ends tests that fail.
func deadline(t *testing.T) time.Time {
	wait := time.Now().Add(patience)
	if end, ok := t.Deadline(); ok && end.Add(-cleanUpTime).Before(wait) {
		return end.Add(-cleanUpTime)
	}
	return wait
}

// timeout is a channel that reports the deadline.
func timeout(t *testing.T) <-chan time.Time { return time.After(time.Until(deadline(t))) }

// forever is a grace that no test lives to see the end of.
const forever = 24 * time.Hour

// fixture is a runtime under test and its pods.
type fixture struct {
	config Config
	dir    string
	mark   string // in the environment of each container

	rt    runtime.Runtime
	watch <-chan types.UID
	close func() // of the runtime and the watch; nil while it is closed

	up   *bufio.Reader // what containers say that are shells
	down *os.File      // commands to them
}

func newFixture(t *testing.T, config Config) *fixture {
	f := &fixture{config: config, dir: t.TempDir(), mark: "RUNTIMETEST_MARK=" + string(uuid.NewUUID())}
	if config.Script == nil {
		up, down := makePipe(t, f.signalDir(t), "up"), makePipe(t, f.signalDir(t), "down")
		f.up, f.down = bufio.NewReader(up), down
	}
	f.open(t)
	t.Cleanup(func() { f.leaveNothing(t) })
	return f
}

func (f *fixture) signalDir(t *testing.T) string {
	dir := filepath.Join(f.dir, "signal")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens the runtime, again after close: the restart of an agent.
func (f *fixture) open(t *testing.T) {
	t.Helper()
	rt, closeRuntime := f.config.Open(t, filepath.Join(f.dir, "state"))
	ctx, cancel := context.WithCancel(context.Background())
	f.rt, f.watch = rt, rt.Watch(ctx)
	f.close = func() {
		cancel()
		for range f.watch { // closed when its goroutine is gone
		}
		closeRuntime()
		f.close = nil
	}
}

// leaveNothing ends what a test has left and checks that nothing stays.
func (f *fixture) leaveNothing(t *testing.T) {
	if f.close == nil {
		f.open(t) // the test failed between close and open
	}
	defer f.close()
	ctx := context.Background()
	pods, err := f.rt.Pods(ctx)
	if err != nil {
		t.Errorf("list: %v", err)
	}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if err := f.rt.StopContainer(ctx, c.ID, 0); err != nil {
				t.Errorf("stop: %v", err)
			}
			f.awaitExit(t, pod.Manifest, c.ID)
		}
		if err := f.rt.RemovePod(ctx, pod.Manifest.UID); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	if pods, err := f.rt.Pods(ctx); err != nil || len(pods) > 0 {
		t.Errorf("after all was removed: got %v, %v; want no pods", pods, err)
	}
	f.expectNoProcess(t)
}

// expectNoProcess checks that no process of any container of this test exists.
func (f *fixture) expectNoProcess(t *testing.T) {
	t.Helper()
	if f.config.Script != nil {
		return // whatever runs may be on another machine
	}
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environments {
		env, err := os.ReadFile(path)
		if err == nil && bytes.Contains(env, []byte(f.mark)) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			t.Errorf("%s: process %q was left behind", filepath.Dir(path), bytes.ReplaceAll(command, []byte{0}, []byte{' '}))
		}
	}
}

// prologue gives scripts the words to talk with the test.
const prologue = `
signal="${STATUSD_MOUNT_SIGNAL:-/signal}"
say() { echo "$*" > "$signal/up"; }
hear() { read -r heard < "$signal/down"; }
`

// newPod makes a pod with one container for each script, named c0, c1, ….
func (f *fixture) newPod(name string, scripts ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: uuid.NewUUID()},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, NodeName: "conformance"},
	}
	if f.config.Script != nil {
		return pod
	}
	// A runtime without isolation may insist on it.
	pod.Spec.HostNetwork, pod.Spec.HostPID, pod.Spec.HostIPC = true, true, true
	pod.Spec.Volumes = []v1.Volume{{Name: "signal", VolumeSource: v1.VolumeSource{
		HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(f.dir, "signal")},
	}}}
	markName, markValue, _ := strings.Cut(f.mark, "=")
	for i, script := range scripts {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{
			Name:                     fmt.Sprintf("c%d", i),
			Image:                    f.config.Image,
			Command:                  []string{"/bin/sh", "-c", strings.ReplaceAll(prologue+script, "$$", "$$$$")}, // $$ is an escape in a pod
			Env:                      []v1.EnvVar{{Name: markName, Value: markValue}},
			VolumeMounts:             []v1.VolumeMount{{Name: "signal", MountPath: "/signal"}},
			TerminationMessagePath:   v1.TerminationMessagePathDefault,
			TerminationMessagePolicy: v1.TerminationMessageReadFile,
		})
	}
	return pod
}

// start starts a pod with all of its containers and returns their IDs.
func (f *fixture) start(t *testing.T, pod *v1.Pod) []string {
	t.Helper()
	f.startPod(t, pod)
	var ids []string
	for i := range pod.Spec.Containers {
		id, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[i], 0)
		if err != nil {
			t.Fatalf("start container %d: %v", i, err)
		}
		ids = append(ids, id)
	}
	return ids
}

func (f *fixture) startPod(t *testing.T, pod *v1.Pod) {
	t.Helper()
	if unsupported := f.rt.Check(pod); len(unsupported) > 0 {
		t.Fatalf("the runtime rejects the pod: %s", runtime.Describe(unsupported))
	}
	if err := f.rt.StartPod(t.Context(), pod); err != nil {
		t.Fatalf("start pod: %v", err)
	}
}

// run runs a pod of one script to its end.
func (f *fixture) run(t *testing.T, pod *v1.Pod) runtime.Container {
	t.Helper()
	return f.awaitExit(t, pod, f.start(t, pod)[0])
}

// output is what a container of a pod of one script has written.
func (f *fixture) output(t *testing.T, id string, options runtime.LogOptions) string {
	t.Helper()
	logs, err := f.rt.Logs(t.Context(), id, options)
	if err != nil {
		t.Fatalf("logs: %v", err)
	}
	data, err := io.ReadAll(logs)
	if err := errors.Join(err, logs.Close()); err != nil {
		t.Fatalf("logs: %v", err)
	}
	return string(data)
}

func (f *fixture) container(t *testing.T, pod *v1.Pod, id string) runtime.Container {
	t.Helper()
	p, err := f.rt.Pod(context.Background(), pod.UID)
	if err != nil {
		t.Fatalf("pod: %v", err)
	}
	for _, c := range p.Containers {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("container %s is not in the list %+v", id, p.Containers)
	return runtime.Container{}
}

// awaitExit waits for the watch to say that the pod has changed until the container has
// exited.
func (f *fixture) awaitExit(t *testing.T, pod *v1.Pod, id string) runtime.Container {
	t.Helper()
	return f.await(t, pod, id, hasExited)
}

// hear waits for the next line that a container says.
func (f *fixture) hear(t *testing.T) string {
	t.Helper()
	line, err := f.up.ReadString('\n')
	if err != nil {
		t.Fatalf("no word from the container: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (f *fixture) expect(t *testing.T, want string) {
	t.Helper()
	if got := f.hear(t); got != want {
		t.Fatalf("the container says %q, want %q", got, want)
	}
}

// tell writes one line for a container that hears.
func (f *fixture) tell(t *testing.T) {
	t.Helper()
	if _, err := f.down.WriteString("go\n"); err != nil {
		t.Fatalf("tell the container: %v", err)
	}
}
