package probe

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

// patience is the timeout of probes that are answered at once.
const patience = time.Hour

// put puts one question the way a task does.
func put(t *testing.T, c *checker, q question) answer {
	t.Helper()
	if q.container == nil {
		q.container = &v1.Container{Name: "app"}
	}
	if q.podIP == "" {
		q.podIP = "127.0.0.1"
	}
	if q.timeout == 0 {
		q.timeout = patience
	}
	return c.check(t.Context(), q)
}

func realChecker() *checker { return newChecker(nil, "v1.2.3") }

// want compares the result, and looks for part of the message.
func want(t *testing.T, story string, got answer, result result, part string) {
	t.Helper()
	if got.result != result || !strings.Contains(got.message, part) {
		t.Errorf("%s: got %v with message %q, want %v with %q in it", story, got.result, got.message, result, part)
	}
}

// closedPort is one on which no process listens. It is bound until the test ends, so that no other process can get it.
func closedPort(t *testing.T) int {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Close(socket); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return address.(*syscall.SockaddrInet4).Port
}

func TestAProbeWithoutHandlerCannotBeCarriedOut(t *testing.T) {
	want(t, "no handler", put(t, realChecker(), question{handler: &v1.ProbeHandler{}}), unknown, "has no handler")
}

func TestTCPSocket(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	open := intstr.FromInt32(int32(listener.Addr().(*net.TCPAddr).Port))
	closed := intstr.FromInt32(int32(closedPort(t)))
	tcp := func(action v1.TCPSocketAction) question {
		return question{handler: &v1.ProbeHandler{TCPSocket: &action}}
	}
	want(t, "open port", put(t, realChecker(), tcp(v1.TCPSocketAction{Port: open})), success, "")
	want(t, "closed port", put(t, realChecker(), tcp(v1.TCPSocketAction{Port: closed})), failure, "connection refused")
	want(t, "unknown port", put(t, realChecker(), tcp(v1.TCPSocketAction{Port: intstr.FromString("x")})), unknown, `port "x"`)
	elsewhere := tcp(v1.TCPSocketAction{Port: open, Host: "127.0.0.1"})
	elsewhere.podIP = "192.0.2.1" // never asked: the host is
	want(t, "named host", put(t, realChecker(), elsewhere), success, "")
}

// TestExec goes through a runtime, as in the agent.
func TestExec(t *testing.T) {
	fake := runtimefake.New()
	container := v1.Container{Name: "app", Env: []v1.EnvVar{{Name: "PORT", Value: "80"}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "web"}, Spec: v1.PodSpec{Containers: []v1.Container{container}}}
	if err := fake.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	id, err := fake.StartContainer(t.Context(), pod, &container, 0)
	if err != nil {
		t.Fatal(err)
	}
	var command []string
	say := func(code int, output string, err error) {
		fake.ExecWith(func(_ context.Context, _ runtime.Container, c []string) (runtime.ExecResult, error) {
			command = c
			return runtime.ExecResult{ExitCode: code, Output: []byte(output)}, err
		})
	}
	probe := question{
		handler:   &v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"check", "$(PORT)"}}},
		container: &container, containerID: id,
	}
	checker := newChecker(fake.Exec, "")

	say(0, "fine", nil)
	want(t, "exit code 0", put(t, checker, probe), success, "fine")
	if !slices.Equal(command, []string{"check", "80"}) {
		t.Errorf("the command was %q, want the variable expanded", command)
	}
	say(3, "100% broken", nil)
	want(t, "exit code 3", put(t, checker, probe), failure, "100% broken")
	say(0, "", errors.New("runtime is away"))
	want(t, "runtime does not answer", put(t, checker, probe), unknown, "runtime is away")

	fake.ExecWith(func(ctx context.Context, _ runtime.Container, _ []string) (runtime.ExecResult, error) {
		<-ctx.Done()
		return runtime.ExecResult{}, ctx.Err()
	})
	hangs := probe
	hangs.timeout = 10 * time.Millisecond
	want(t, "command hangs", put(t, checker, hangs), failure, `command timed out: "check 80" timed out after 10ms`)

	fake.Exit(id, runtimefake.Exit{})
	want(t, "container has ended", put(t, checker, probe), unknown, runtime.ErrNotRunning.Error())
}

func TestExpandKnowsOnlyTheSpec(t *testing.T) {
	env := []v1.EnvVar{
		{Name: "A", Value: "first"}, {Name: "A", Value: "x$(B)"}, {Name: "B", Value: "y"},
		{Name: "FIELD", ValueFrom: &v1.EnvVarSource{}},
	}
	for word, want := range map[string]string{
		"plain":      "plain",
		"$(A)":       "x$(B)",
		"$(B)$(B)":   "yy",
		"$$(B)":      "$(B)",
		"$$$(B)":     "$y",
		"$(NOBODY)":  "$(NOBODY)",
		"$(B":        "$(B",
		"$B $":       "$B $",
		"[$(FIELD)]": "[]",
	} {
		if got := expand([]string{word}, env); got[0] != want {
			t.Errorf("%s: got %s, want %s", word, got[0], want)
		}
	}
}

func portOf(t *testing.T, address string) intstr.IntOrString {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return intstr.FromInt32(int32(port))
}
