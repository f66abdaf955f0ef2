package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/statustest"
)

// TestTraces reads testdata/*.txt: calls in, requests out. Each file is one life of a
// manager in virtual time. Run with -rewrite to record what it does now.
//
//	start                                call Run
//	pod NAME... [static]                 known here and, but for static pods, in the API
//	mirror NAME uid=U                    the API has a new mirror of the static pod
//	running|unready|succeeded|failed NAME...  report this status
//	ready NAME=true|false                report a readiness result
//	terminate|delete NAME...             end for good | an API user deletes with grace
//	force-delete NAME                    the pod vanishes from the API without an event
//	drift NAME                           a second writer changes the status
//	api ok|down|busy|forbidden           how the API server answers from now on
//	wait DURATION                        let time pass
//	orphans keep=NAME,...                forget all others
//	pending                              what the manager says is not delivered
//
// Each command answers with the requests that went out, with the time since the last one.
func TestTraces(t *testing.T) {
	datadriven.Walk(t, "testdata/traces", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			var trace *trace
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if trace == nil {
					trace = newTrace(t)
				}
				return trace.run(t, d)
			})
		})
	})
}

type trace struct {
	*world
	pods map[string]*v1.Pod
	now  time.Time
}

func newTrace(t *testing.T) *trace {
	w := newWorld(t, func(o *Options) { o.Workers = 1 })
	w.manager.cache.jitter = func() float64 { return 0 }
	return &trace{pods: map[string]*v1.Pod{}, now: time.Now(), world: w}
}

func (tr *trace) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "start":
		tr.world.run()
	case "pod":
		tr.createPods(d)
	case "mirror":
		var uid string
		d.ScanArgs(t, "uid", &uid)
		tr.api.Put(mirrorOf(tr.pod(t, d.CmdArgs[0].Key), types.UID(uid)))
	case "running", "unready", "succeeded", "failed":
		for _, arg := range d.CmdArgs {
			if _, err := tr.manager.SetPodStatus(tr.current(t, arg.Key), tr.status(t, d.Cmd, arg.Key)); err != nil {
				return "refused: " + err.Error() + "\n" + tr.requests()
			}
		}
	case "ready":
		for _, arg := range d.CmdArgs {
			pod := tr.pod(t, arg.Key)
			if err := tr.manager.SetContainerReadiness(pod.UID, "process://"+string(pod.UID), arg.Vals[0] == "true"); err != nil {
				return "refused: " + err.Error()
			}
		}
	case "terminate":
		for _, arg := range d.CmdArgs {
			must(tr.manager.TerminatePod(tr.current(t, arg.Key)))
		}
	case "delete":
		for _, arg := range d.CmdArgs {
			pod := tr.api.Pod(tr.pod(t, arg.Key))
			deleting(pod)
			tr.api.Put(pod)
		}
	case "force-delete":
		tr.api.Remove("ns", d.CmdArgs[0].Key)
	case "drift":
		drift(tr.world, tr.pod(t, d.CmdArgs[0].Key))
	case "api":
		tr.answer(t, d.CmdArgs[0].Key)
	case "wait":
		duration, err := time.ParseDuration(d.CmdArgs[0].Key)
		must(err)
		time.Sleep(duration)
	case "orphans":
		keep := map[types.UID]bool{}
		for _, arg := range d.CmdArgs {
			for _, name := range arg.Vals {
				keep[tr.pod(t, name).UID] = true
			}
		}
		tr.manager.RemoveOrphanedStatuses(keep)
	case "pending":
		return tr.describePending()
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return tr.requests()
}

func (tr *trace) createPods(d *datadriven.TestData) {
	edits := []func(*v1.Pod){restartNever}
	static := d.HasArg("static")
	if static {
		edits = append(edits, staticPod)
	}
	for _, arg := range d.CmdArgs {
		if arg.Key == "static" {
			continue
		}
		if static {
			tr.pods[arg.Key] = newPod(arg.Key, edits...)
			tr.table.Set(tr.pods[arg.Key])
			continue
		}
		tr.pods[arg.Key] = tr.world.create(arg.Key, edits...)
	}
}

func (tr *trace) pod(t *testing.T, name string) *v1.Pod {
	pod, ok := tr.pods[name]
	if !ok {
		t.Fatalf("the trace has no pod %s", name)
	}
	return pod
}

// current is the pod as the watch has brought it, which is what a worker reports with.
func (tr *trace) current(t *testing.T, name string) *v1.Pod {
	pod := tr.pod(t, name)
	if known, ok := tr.table.ByUID(pod.UID); ok {
		return known
	}
	return pod
}

func (tr *trace) status(t *testing.T, word, name string) v1.PodStatus {
	pod := tr.pod(t, name)
	switch word {
	case "succeeded":
		return ended(pod, 0)
	case "failed":
		return ended(pod, 1)
	default:
		return running(pod, word == "running")
	}
}

func (tr *trace) answer(t *testing.T, how string) {
	answers := map[string]error{
		"ok":        nil,
		"down":      errors.New("connection refused"),
		"busy":      apierrors.NewTooManyRequests("busy", 5),
		"forbidden": apierrors.NewForbidden(podResource, "any", errors.New("not your pod")),
	}
	err, ok := answers[how]
	if !ok {
		t.Fatalf("the API server cannot be %s", how)
	}
	tr.api.SetFault(func(context.Context, statustest.Request) error { return err })
}

// requests lists what was sent since the last call.
func (tr *trace) requests() string {
	synctest.Wait()
	var b strings.Builder
	for _, s := range tr.api.Requests() {
		if s.Verb == "LIST" {
			continue
		}
		fmt.Fprintf(&b, "+%s %s %s%s", s.At.Sub(tr.now).Round(100*time.Millisecond), s.Verb, s.Name, patchWords(s.Body))
		if s.Err != nil {
			fmt.Fprintf(&b, " -> %s", reasonOf(s.Err))
		}
		b.WriteByte('\n')
	}
	tr.api.ForgetRequests()
	tr.now = time.Now()
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// patchWords tells what a patch is about, without the text of it.
func patchWords(patch string) string {
	if patch == "" {
		return ""
	}
	var body struct {
		Status map[string]any
	}
	must(json.Unmarshal([]byte(patch), &body))
	var words []string
	for _, key := range slices.Sorted(maps.Keys(body.Status)) {
		switch value := body.Status[key].(type) {
		case nil, string:
			words = append(words, fmt.Sprintf("%s=%v", key, value))
		case []any:
			if key != "conditions" {
				continue
			}
			for _, c := range value {
				condition := c.(map[string]any)
				if status, ok := condition["status"]; ok {
					words = append(words, fmt.Sprintf("%v=%v", condition["type"], status))
				}
			}
		}
	}
	return " {" + strings.Join(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "startTime") }), " ") + "}"
}

func (tr *trace) describePending() string {
	var b strings.Builder
	for _, p := range tr.manager.Pending() {
		fmt.Fprintf(&b, "%s version %d, accepted %d, %d attempts", p.Name, p.Version, p.Accepted, p.Attempts)
		if p.Err != nil {
			fmt.Fprintf(&b, ", error: %v", p.Err)
		}
		if p.Reason != "" {
			fmt.Fprintf(&b, ", waits: %s", p.Reason)
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}
