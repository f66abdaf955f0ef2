package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// expectOutput runs a pod to its end and compares what it has written.
func (f *fixture) expectOutput(t *testing.T, pod *v1.Pod, want string) {
	t.Helper()
	c := f.run(t, pod)
	if got := f.output(t, c.ID, runtime.LogOptions{}); got != want || c.ExitCode != 0 {
		t.Errorf("exit code %d with output %q, want 0 with %q", c.ExitCode, got, want)
	}
}

func testEnvironment(t *testing.T, f *fixture) {
	pod := f.newPod("env", `echo "$PLAIN $NAME $NAMESPACE $UID_ $NODE $LABEL $ANNOTATION"; test -n "$IP" && test -n "$PATH" && test -z "$GOPATH$GOFLAGS$GOCACHE"`)
	pod.Labels = map[string]string{"app": "conformance"}
	pod.Annotations = map[string]string{"example.com/a.b": "with dots"}
	field := func(name, path string) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}}
	}
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env,
		v1.EnvVar{Name: "PLAIN", Value: "a  b"},
		field("NAME", "metadata.name"), field("NAMESPACE", "metadata.namespace"), field("UID_", "metadata.uid"),
		field("NODE", "spec.nodeName"), field("IP", "status.podIP"),
		field("LABEL", "metadata.labels['app']"), field("ANNOTATION", "metadata.annotations['example.com/a.b']"))
	f.expectOutput(t, pod, fmt.Sprintf("a  b env default %s conformance conformance with dots\n", pod.UID))
}

func testExpansion(t *testing.T, f *fixture) {
	pod := f.newPod("expansion", "")
	container := &pod.Spec.Containers[0]
	container.Command = []string{"/bin/sh", "-c", `echo "$1|$2|$3|$DERIVED"`, "sh"}
	container.Args = []string{"$(BASE)/x", "$$(BASE)", "$(MISSING) $5 100%"}
	container.Env = append(container.Env,
		v1.EnvVar{Name: "EARLY", Value: "$(BASE)"}, // not defined yet, so it stays
		v1.EnvVar{Name: "BASE", Value: "/srv"},
		v1.EnvVar{Name: "DERIVED", Value: "$(BASE)/$(EARLY)"})
	f.expectOutput(t, pod, "/srv/x|$(BASE)|$(MISSING) $5 100%|/srv/$(BASE)\n")
}

func testWorkingDir(t *testing.T, f *fixture) {
	pod := f.newPod("cwd", "pwd")
	pod.Spec.Containers[0].WorkingDir = "/etc"
	f.expectOutput(t, pod, "/etc\n")
}

// addVolume adds an emptyDir volume and mounts it in all containers.
func addVolume(pod *v1.Pod, mount v1.VolumeMount) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: mount.Name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].VolumeMounts = append(pod.Spec.Containers[i].VolumeMounts, mount)
	}
}

func testEmptyDirIsShared(t *testing.T, f *fixture) {
	pod := f.newPod("shared",
		`echo hello > "${STATUSD_MOUNT_VAR_DATA:-/var/data}/file"; say written`,
		`hear; cat "${STATUSD_MOUNT_VAR_DATA:-/var/data}/file"`)
	addVolume(pod, v1.VolumeMount{Name: "data", MountPath: "/var/data"})
	ids := f.start(t, pod)
	f.expect(t, "written")
	f.tell(t)
	f.awaitExit(t, pod, ids[0])
	f.awaitExit(t, pod, ids[1])
	if got := f.output(t, ids[1], runtime.LogOptions{}); got != "hello\n" {
		t.Errorf("the second container reads %q, want what the first wrote", got)
	}
}

func testSubPath(t *testing.T, f *fixture) {
	pod := f.newPod("subpath", `cd "${STATUSD_MOUNT_VAR_DATA:-/var/data}" && echo inside > file && cat file`)
	addVolume(pod, v1.VolumeMount{Name: "data", MountPath: "/var/data", SubPath: "a/b"})
	f.expectOutput(t, pod, "inside\n")
}

func testLogs(t *testing.T, f *fixture) {
	pod := f.newPod("logs", `echo one; echo two >&2; echo three; printf four; say written; hear`)
	id := f.start(t, pod)[0]
	f.expect(t, "written")
	f.tell(t)
	f.awaitExit(t, pod, id)
	all := f.output(t, id, runtime.LogOptions{})
	for _, line := range []string{"one", "two", "three", "four"} {
		if !strings.Contains(all, line+"\n") {
			t.Errorf("log %q lacks %q", all, line)
		}
	}
	if tail := f.output(t, id, runtime.LogOptions{Tail: new(int64(1))}); strings.Count(tail, "\n") != 1 || !strings.HasSuffix(all, tail) {
		t.Errorf("tail of 1: got %q, want the last line of %q", tail, all)
	}
	if tail := f.output(t, id, runtime.LogOptions{Tail: new(int64(100))}); tail != all {
		t.Errorf("tail of 100: got %q, want all of %q", tail, all)
	}
	for line := range strings.Lines(f.output(t, id, runtime.LogOptions{Timestamps: true})) {
		stamp, _, _ := strings.Cut(line, " ")
		if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
			t.Errorf("line %q does not start with a time: %v", line, err)
		}
	}
}

func testLongLine(t *testing.T, f *fixture) {
	pod := f.newPod("long", `head -c 100000 /dev/zero | tr '\0' x; echo; echo end`)
	f.expectOutput(t, pod, strings.Repeat("x", 100000)+"\nend\n")
}

const toTerminationLog = ` > "${STATUSD_TERMINATION_LOG:-/dev/termination-log}"`

func testTerminationMessage(t *testing.T, f *fixture) {
	pod := f.newPod("message", `echo out; printf 'all is lost'`+toTerminationLog+`; exit 1`)
	if c := f.run(t, pod); c.Message != "all is lost" {
		t.Errorf("got message %q, want what the container wrote", c.Message)
	}
}

func testTerminationMessageFromLogs(t *testing.T, f *fixture) {
	for _, c := range []struct{ story, script, want string }{
		{"failed and wrote nothing", "echo a; echo b >&2; exit 1", "a\nb\n"},
		{"failed and wrote a message", "echo a; printf why" + toTerminationLog + "; exit 1", "why"},
		{"succeeded", "echo a", ""},
		{"wrote more than 80 lines", "i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); done; exit 1", lines(120, 200)},
	} {
		pod := f.newPod("fallback", c.script)
		pod.Spec.Containers[0].TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
		got := f.run(t, pod).Message
		if c.story == "failed and wrote nothing" && got == "b\na\n" {
			got = c.want // the order of two streams is not defined
		}
		if got != c.want {
			t.Errorf("%s: got message %q, want %q", c.story, got, c.want)
		}
	}
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// The message is 3-byte runes only, so that a cut at the limit would split one (N3).
func testTerminationMessageIsCut(t *testing.T, f *fixture) {
	pod := f.newPod("runes", `i=0; while [ $i -lt 2000 ]; do printf '\342\202\254'; i=$((i+1)); done`+toTerminationLog+`; exit 1`)
	message := f.run(t, pod).Message
	if len(message) > runtime.MaxMessageBytes || len(message) < runtime.MaxMessageBytes-utf8.UTFMax || strings.Trim(message, "€") != "" {
		t.Errorf("got %d bytes, beginning with %q; want just under %d, all of whole runes", len(message), message[:min(9, len(message))], runtime.MaxMessageBytes)
	}
}

func testExec(t *testing.T, f *fixture) {
	pod := f.newPod("exec", "hear")
	pod.Spec.Containers[0].WorkingDir = "/etc"
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, v1.EnvVar{Name: "INSIDE", Value: "yes"})
	id := f.start(t, pod)[0]
	for _, c := range []struct {
		script string
		want   runtime.ExecResult
	}{
		{"exit 0", runtime.ExecResult{}},
		{"echo $INSIDE; pwd >&2; exit 3", runtime.ExecResult{ExitCode: 3, Output: []byte("yes\n/etc\n")}},
		{"kill -KILL $$", runtime.ExecResult{ExitCode: 137}},
	} {
		got, err := f.rt.Exec(t.Context(), id, []string{"sh", "-c", c.script})
		if err != nil || got.ExitCode != c.want.ExitCode || string(got.Output) != string(c.want.Output) {
			t.Errorf("%s: got %d %q, %v; want %d %q", c.script, got.ExitCode, got.Output, err, c.want.ExitCode, c.want.Output)
		}
	}
	if _, err := f.rt.Exec(t.Context(), id, []string{"no-such-command-anywhere"}); err == nil {
		t.Error("a command that does not exist: got no error")
	}
	big, err := f.rt.Exec(t.Context(), id, []string{"sh", "-c", "head -c 1000000 /dev/zero"})
	if err != nil || len(big.Output) != runtime.MaxExecOutputBytes {
		t.Errorf("a million bytes of output: got %d, %v; want the first %d", len(big.Output), err, runtime.MaxExecOutputBytes)
	}
}

func testExecIsKilledWithItsContext(t *testing.T, f *fixture) {
	f.expectKilledWithContext(t, func(ctx context.Context, id string) error {
		_, err := f.rt.Exec(ctx, id, []string{"sh", "-c", prologue + `trap '' TERM; say inside; sleep 100000`})
		return err
	})
}

// expectKilledWithContext executes a command, which says "inside", in a container until its context ends.
func (f *fixture) expectKilledWithContext(t *testing.T, execute func(ctx context.Context, id string) error) {
	pod := f.newPod("exec", "say ready; hear")
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, id) }()
	f.expect(t, "inside")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	f.tell(t)
	f.awaitExit(t, pod, id)
	f.expectNoProcess(t)
}

func testExecNeedsARunningContainer(t *testing.T, f *fixture) {
	c := f.run(t, f.newPod("gone", "exit 0"))
	if _, err := f.rt.Exec(t.Context(), c.ID, []string{"true"}); !errors.Is(err, runtime.ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
}
