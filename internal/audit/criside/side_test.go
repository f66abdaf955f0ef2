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

// rarely is a pace at which nothing is seen by a list but the first.
var rarely = Options{Pace: 24 * time.Hour, Least: time.Millisecond, Timeout: 10 * time.Second}

func TestEventsBringWhatHappens(t *testing.T) {
	f := newFake(t)
	o := rarely
	o.Endpoint = f.Endpoint()
	w := watchSide(t, o)
	w.Await("the first answer", func(r audit.Runtime) bool { return r.RuntimeAnswer.Known() })
	f.awaitStream()
	m := newMachine(t, f.Endpoint())
	sandbox := m.sandbox(podUID)
	container := m.container(podUID, sandbox, "app", "while :; do sleep 1; done", true)
	w.Await("its start", func(r audit.Runtime) bool { return r.Containers[container].State == audit.ContainerRunning })
	m.stop(container)
	facts := w.Await("its end", func(r audit.Runtime) bool { return r.Containers[container].State == audit.ContainerExited })
	if got := facts.Containers[container]; got.ExitCode != 137 || got.UID != podUID || got.Attempt != 7 || got.SandboxID != sandbox || got.Finished.IsZero() {
		t.Errorf("got %+v", got)
	}
	if got := facts.Sandboxes[sandbox]; got.UID != podUID || !slices.Equal(got.IPs, []string{"10.0.0.1", "fd00::1"}) {
		t.Errorf("got %+v", got)
	}
	m.remove(container)
	w.Await("its removal", func(r audit.Runtime) bool { return len(r.Containers) == 0 && len(r.Sandboxes) == 1 })
	if len(facts.Containers) != 1 {
		t.Error("the facts that were handed out have changed")
	}
}

// An event may be older than a list that was answered before it came, or that is under way: a container that has ended does not
// run again, and is not asked for again.
func TestAnEventThatIsOlderThanAListTakesNothingBack(t *testing.T) {
	f := newFake(t)
	o := rarely
	o.Endpoint, o.Timeout = f.Endpoint(), time.Hour
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, f.Endpoint())
	sandbox := m.sandbox(podUID)
	container := m.container(podUID, sandbox, "app", "exit 2", true)
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.client.close()
	ended := func(when string) {
		t.Helper()
		if got := s.Facts().Containers[container]; got.State != audit.ContainerExited || got.ExitCode != 2 {
			t.Errorf("%s: got %+v, want its end", when, got)
		}
	}
	ended("after the list")
	started := &runtimeapi.ContainerEventResponse{
		ContainerId: container, ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		PodSandboxStatus:   &runtimeapi.PodSandboxStatus{Id: sandbox, Metadata: &runtimeapi.PodSandboxMetadata{Uid: podUID}},
		ContainersStatuses: []*runtimeapi.ContainerStatus{{Id: container, State: runtimeapi.ContainerState_CONTAINER_RUNNING}},
	}
	s.event(started)
	ended("after the event of its start")
	before := s.Calls()
	next, err := s.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after := s.Calls(); after["ContainerStatus"] != before["ContainerStatus"] {
		t.Errorf("got calls %v after %v, want no status again", after, before)
	}
	s.state, s.news = newState(), newNews() // as if that list were the first
	s.event(started)
	s.listed(next, time.Now())
	ended("after an event during the list")
}

// awaitStream waits until events are followed.
func (f *fake) awaitStream() {
	for {
		following := false
		f.set(func() { following = len(f.streams) > 0 })
		if following {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A runtime that gives each event to one client would keep it from the kubelet.
func TestEventsOfContainerd1AreLeftToTheKubelet(t *testing.T) {
	for version, want := range map[string]bool{"1.6.20~ds1": false, "v1.7.24": false, "2.1.0": true, "v2.0.0-rc.1": true} {
		if got := broadcasts("containerd", version); got != want {
			t.Errorf("containerd %s: got %t, want %t", version, got, want)
		}
	}
	if !broadcasts("cri-o", "1.33.0") {
		t.Error("cri-o has events for all")
	}
	f := newFake(t)
	f.set(func() { f.name, f.version = "containerd", "1.7.24" })
	w := watchSide(t, Options{Endpoint: f.Endpoint()})
	w.looks(3)
	if calls := w.Side.Calls(); calls["GetContainerEvents"] != 0 {
		t.Errorf("got calls %v, want no events", calls)
	}
}

func TestARuntimeWithoutEventsIsListed(t *testing.T) {
	f := newFake(t)
	f.set(func() { f.name = "without events" })
	w := watchSide(t, Options{Endpoint: f.Endpoint()})
	m := newMachine(t, f.Endpoint())
	container := m.container(podUID, m.sandbox(podUID), "app", "exit 2", true)
	w.Await("its end", func(r audit.Runtime) bool { return r.Containers[container].ExitCode == 2 })
	w.looks(3)
	if calls := w.Side.Calls(); calls["GetContainerEvents"] > 1 {
		t.Errorf("got calls %v, want events to be asked for once", calls)
	}
}

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
	w := watchSide(t, Options{Endpoint: f.Endpoint(), NoEvents: true})
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
	w := watchSide(t, Options{Endpoint: f.Endpoint(), NoEvents: true})
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
