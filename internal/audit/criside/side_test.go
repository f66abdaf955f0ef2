package criside

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFakeRuntime(t *testing.T) {
	runtimeCases(t, func(t *testing.T) control { return newFake(t) })
}

const podUID = "0f8fad5b-d9cb-469f-a165-70867728950e"

func TestAContainerThatVanishesAfterTheListIsGone(t *testing.T) {
	f := newFake(t)
	m := newMachine(t, f.Endpoint())
	stays := m.container(podUID, m.sandbox(podUID), "app", "exit 2", true)
	f.set(func() {
		f.listed = []*runtimeapi.Container{{Id: "vanished", State: runtimeapi.ContainerState_CONTAINER_EXITED}}
	})
	w := watchSide(t, Options{Endpoint: f.Endpoint()})
	facts := w.Await("an answer", func(r audit.Runtime) bool { return r.RuntimeAnswer.Known() })
	if got := ids(facts); !slices.Equal(got, []string{stays}) {
		t.Errorf("got %q, want the one that is left", got)
	}
}

func TestAContainerWhoseStatusFailsHasNoExitCode(t *testing.T) {
	f := newFake(t)
	m := newMachine(t, f.Endpoint())
	container := m.container(podUID, m.sandbox(podUID), "app", "exit 2", true)
	f.set(func() { f.statusErr = status.Error(codes.Internal, "its files are broken") })
	w := watchSide(t, Options{Endpoint: f.Endpoint()})
	facts := w.Await("an answer", func(r audit.Runtime) bool { return r.RuntimeAnswer.Known() })
	if got := facts.Containers[container]; got.State != audit.ContainerUnknown || !strings.Contains(got.Message, "broken") {
		t.Errorf("got %+v, want an unknown state and why", got)
	}
	f.set(func() { f.statusErr = nil })
	w.Await("its exit code", func(r audit.Runtime) bool {
		return r.Containers[container].State == audit.ContainerExited && r.Containers[container].ExitCode == 2
	})
	f.set(func() {
		f.statusErr = status.Error(codes.Unavailable, "going down")
		f.listed = []*runtimeapi.Container{{Id: "new", State: runtimeapi.ContainerState_CONTAINER_EXITED}}
	})
	silent := w.Await("silence", func(r audit.Runtime) bool { return !r.RuntimeAnswer.Known() })
	if got := ids(silent); !slices.Equal(got, []string{container}) {
		t.Errorf("got %q, want the facts of the last whole answer", got)
	}
}

func TestHostileLists(t *testing.T) {
	f := newFake(t)
	f.set(func() { f.listed = []*runtimeapi.Container{{Id: ""}} })
	w := watchSide(t, Options{Endpoint: f.Endpoint()})
	w.Await("an error", func(r audit.Runtime) bool { return strings.Contains(r.RuntimeAnswer.Err, "without an ID") })

	// Nothing but an ID; annotations that are no numbers; times before time; a state that does not exist.
	f.set(func() {
		f.containers["odd"] = &fakeContainer{status: &runtimeapi.ContainerStatus{
			Id: "odd", State: 77, CreatedAt: -5, Metadata: &runtimeapi.ContainerMetadata{}, Image: &runtimeapi.ImageSpec{}, ImageRef: "x",
			Annotations: map[string]string{restartCount: "-1"},
		}}
		f.listed = nil
	})
	facts := w.Await("an answer", func(r audit.Runtime) bool { return r.RuntimeAnswer.Known() })
	if got := facts.Containers["odd"]; got.State != audit.ContainerUnknown || got.UID != "" || got.Attempt != 0 || !got.Created.IsZero() {
		t.Errorf("got %+v", got)
	}
}

// A runtime that is down when the observer starts leaves no connection behind for each try.
func TestARuntimeThatIsDownAtFirst(t *testing.T) {
	f := newFake(t)
	f.Kill()
	w := watchSide(t, Options{Endpoint: f.Endpoint(), Timeout: time.Second})
	first := w.Await("silence", func(r audit.Runtime) bool { return !r.RuntimeAnswer.Silent.IsZero() })
	if first.RuntimeAnswer.Known() || !first.RuntimeAnswer.At.IsZero() {
		t.Errorf("got %+v", first.RuntimeAnswer)
	}
	for w.Side.Calls()["Version"] < 3 {
		time.Sleep(time.Millisecond)
	}
	f.Start()
	w.Await("an answer", func(r audit.Runtime) bool { return r.RuntimeAnswer.Known() })
}
