package podstatus_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// TestStories plays testdata/*.txt: each file is one life of a pod, told as a node would
// report it. Rewrite what they print with: go test ./podstatus -run Stories -rewrite.
//
// The commands, in the words of words_test.go; at=HH:MM:SS moves the clock:
//
//	pod                       a new pod, from the words below
//	spec                      the same pod, from other words
//	report [terminal] [no-sandbox]
//	                          what the runtime shows: lines "init: …", "app: …", and
//	                          "also: …" for conditions that are given; the rest follows
//	probe id=ID ready=BOOL    a readiness probe changed its mind
//	probe id=ID started=BOOL  the same for a startup probe
//	resize                    one of: pending REASON GEN, in-progress GEN, error GEN MESSAGE, done, granted
//	terminate [seen=(ID,CODE)]  the pod has ended; SEEN is an end that was observed
//	others                    another writer writes conditions to the API
//	sync [could-run]          the cached status is written to the API; could-run says that
//	                          containers may still be alive
//	deletable [finished]      may the pod be deleted from the API?
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("stories in testdata: found %d, error %v; want at least one", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := &story{now: noon}
			datadriven.RunTest(t, file, s.play)
		})
	}
}

// story is the memory of a node about one pod.
type story struct {
	now    time.Time
	pod    *v1.Pod
	cached *v1.PodStatus // nil until the first report
	resize podstatus.ResizeConditions
	api    *v1.PodStatus
}

func (s *story) play(t *testing.T, d *datadriven.TestData) string {
	if d.HasArg("at") {
		var clock string
		d.ScanArgs(t, "at", &clock)
		at, err := time.Parse(time.TimeOnly, clock)
		if err != nil {
			d.Fatalf(t, "time: %v", err)
		}
		s.now = noon.Truncate(24 * time.Hour).Add(at.Sub(at.Truncate(24 * time.Hour)))
	}
	switch d.Cmd {
	case "pod":
		*s = story{now: s.now, pod: parsePod(t, d.Input), api: &v1.PodStatus{Phase: v1.PodPending}}
		return ""
	case "spec":
		s.pod = parsePod(t, d.Input)
		return ""
	case "report":
		return s.report(t, d)
	case "probe":
		return s.probe(t, d)
	case "resize":
		return s.playResize(t, d)
	case "terminate":
		return s.terminate(t, d)
	case "others":
		s.api.Conditions = append(s.api.Conditions, parseConditions(d.Input)...)
		return ""
	case "sync":
		return s.sync(t, d.HasArg("could-run"))
	case "deletable":
		apiPod := s.pod.DeepCopy()
		apiPod.Status = *s.api
		return fmt.Sprintln(podrules.Deletable(apiPod, d.HasArg("finished")))
	}
	d.Fatalf(t, "command %q is not known", d.Cmd)
	return ""
}

// report generates the status as a node does: states first, then phase, then conditions.
func (s *story) report(t *testing.T, d *datadriven.TestData) string {
	old := s.old()
	next := &v1.PodStatus{ObservedGeneration: s.pod.Generation}
	var also []v1.PodCondition
	for line := range strings.Lines(d.Input) {
		key, words, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "init":
			next.InitContainerStatuses = parseStatuses(t, words)
		case "app":
			next.ContainerStatuses = parseStatuses(t, words)
		case "also":
			also = parseConditions(words)
		default:
			d.Fatalf(t, "line %q is not known", line)
		}
	}
	all := allOf(next)
	next.Phase = podstatus.Phase(s.pod, all, d.HasArg("terminal"), podstatus.HasInitialized(s.pod, old))
	next.Conditions = slices.Concat(also, s.resize.List(), []v1.PodCondition{
		podrules.ReadyToStartContainers(s.pod, d.HasArg("no-sandbox")),
		podstatus.Initialized(s.pod, old, all, next.Phase),
		podstatus.Ready(s.pod, also, all, next.Phase),
		podstatus.ContainersReady(s.pod, all, next.Phase),
	})
	if podrules.CouldRestartAll(s.pod) {
		held := slices.DeleteFunc(slices.Clone(all), func(c v1.ContainerStatus) bool { return c.State.Waiting != nil })
		next.Conditions = append(next.Conditions, podrules.AllContainersRestarting(s.pod, old, held, next.Phase))
	}
	return s.store(old, next)
}

func (s *story) probe(t *testing.T, d *datadriven.TestData) string {
	var id string
	var value bool
	d.ScanArgs(t, "id", &id)
	flipper := podrules.WithContainerReady
	if !d.MaybeScanArgs(t, "ready", &value) {
		d.ScanArgs(t, "started", &value)
		flipper = podrules.WithContainerStarted
	}
	old := s.cached
	next, flip := flipper(s.pod, old, id, value, s.now)
	if flip != podrules.Flipped {
		return fmt.Sprintln(flip)
	}
	s.cached = &next
	return describeChange(old, &next)
}

func (s *story) playResize(t *testing.T, d *datadriven.TestData) string {
	words := strings.Fields(d.Input)
	var changed bool
	generation := int64(0)
	switch words[0] {
	case "pending":
		s.resize, changed = s.resize.SetPending(words[1], "", int64(parseInt(t, words[2])), s.now)
	case "in-progress":
		s.resize, generation, changed = s.resize.SetInProgress("", "", int64(parseInt(t, words[1])), s.now)
	case "error":
		s.resize, generation, changed = s.resize.SetInProgress(v1.PodReasonError, strings.Join(words[2:], " "), int64(parseInt(t, words[1])), s.now)
	case "granted":
		s.resize, changed = s.resize.ClearPending()
	case "done":
		s.resize, generation, changed = s.resize.ClearInProgress()
	default:
		d.Fatalf(t, "resize step %q is not known", words[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "changed %t, generation %d\n", changed, generation)
	writeConditions(&b, s.resize.List())
	return b.String()
}

func (s *story) terminate(t *testing.T, d *datadriven.TestData) string {
	seen := map[string]int32{}
	if d.HasArg("seen") {
		var id, code string
		d.ScanArgs(t, "seen", &id, &code)
		seen[id] = int32(parseInt(t, code))
	}
	old := s.old()
	next := podrules.Terminate(s.pod, s.cached, observing(seen))
	return s.store(old, &next)
}

// sync writes what the node says over what the API holds.
func (s *story) sync(t *testing.T, couldRun bool) string {
	merged := podrules.Merge(s.pod, s.api, s.cached, couldRun, s.now)
	patch, err := podrules.Patch(s.pod.UID, s.api, &merged)
	if err != nil {
		t.Fatalf("patch: %v", err)
	}
	if patch == nil {
		return "nothing to send\n"
	}
	s.api = apply(t, s.api, patch)
	var b strings.Builder
	fmt.Fprintf(&b, "sent: %s\n", strings.Join(membersOf(t, patch), " "))
	fmt.Fprintf(&b, "API: %s: %s\n", s.api.Phase, describeStates(allOf(s.api)))
	writeConditions(&b, s.api.Conditions)
	return b.String()
}

// membersOf names the fields of the status that a patch speaks about.
func membersOf(t *testing.T, patch []byte) []string {
	var p struct{ Status map[string]any }
	if err := json.Unmarshal(patch, &p); err != nil {
		t.Fatalf("patch %s: %v", patch, err)
	}
	maps.DeleteFunc(p.Status, func(key string, _ any) bool { return strings.HasPrefix(key, "$") })
	return slices.Sorted(maps.Keys(p.Status))
}

// old is what the node said before, or else what the API shows.
func (s *story) old() *v1.PodStatus {
	if s.cached == nil {
		return s.api
	}
	return s.cached
}

// store checks a status, makes it the next one, and prints it.
func (s *story) store(old, incoming *v1.PodStatus) string {
	if err := podrules.CheckTransitions(s.pod, old, incoming); err != nil {
		return "refused: " + err.Error() + "\n"
	}
	if s.cached != nil && podrules.Unchanged(s.pod, s.cached, incoming) {
		return "unchanged\n"
	}
	next := podrules.Next(s.pod, old, incoming, s.now)
	s.cached = &next
	return describeChange(old, &next)
}

// describeChange prints what ended, and then the whole status.
func describeChange(old, next *v1.PodStatus) string {
	var b strings.Builder
	for _, c := range podrules.NewlyTerminated(old, next) {
		fmt.Fprintf(&b, "ended: %s %s, exit code %d %s\n", c.Kind, c.Name, c.ExitCode, c.Reason)
	}
	fmt.Fprintf(&b, "%s: %s\n", next.Phase, describeStates(allOf(next)))
	writeConditions(&b, next.Conditions)
	return b.String()
}

// writeConditions prints one condition a line, with the time since when it is so.
func writeConditions(b *strings.Builder, conditions []v1.PodCondition) {
	for _, c := range conditions {
		since := ""
		if c.LastTransitionTime != (metav1.Time{}) {
			since = "  since " + c.LastTransitionTime.UTC().Format(time.TimeOnly)
		}
		fmt.Fprintf(b, "  %s%s\n", describe(c), since)
	}
}
