package alertsetup

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/view"
)

// looping is a node with one pod, whose container ends again and again as a node runs it.
type looping struct {
	nothing
	// serves: the container has no readiness probe, so that it counts as ready while it runs.
	serves bool

	mu      sync.Mutex // guards what follows
	pod     *v1.Pod
	records []view.Record
	changed func(types.UID)
}

func newLooping(serves bool) *looping {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", CreationTimestamp: metav1.Now()},
		Spec: v1.PodSpec{NodeName: "n1", RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "app", Image: "web:1"}}}}
	start := metav1.Now()
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &start, ContainerStatuses: []v1.ContainerStatus{{Name: "app"}}}
	return &looping{serves: serves, pod: pod}
}

func (l *looping) UIDs() []types.UID { return []types.UID{"u1"} }

func (l *looping) Pod(types.UID) (view.Pod, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod := l.pod.DeepCopy()
	return view.Pod{Facts: explain.Facts{Now: time.Now(), Pod: pod, Status: &pod.Status}}, true
}

func (l *looping) History(namespace, _ string) (view.PodHistory, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if namespace == "" {
		return view.PodHistory{}, true
	}
	return view.PodHistory{Ref: history.Ref{UID: "u1", Namespace: "shop", Name: "web"}, Created: l.pod.CreationTimestamp.Time, Records: append([]view.Record{}, l.records...)}, true
}

func (l *looping) Watch(ctx context.Context, changed func(types.UID)) error {
	l.mu.Lock()
	l.changed = changed
	l.mu.Unlock()
	<-ctx.Done()
	return nil
}

// move changes the state of the container, and records it.
func (l *looping) move(state v1.ContainerState, word, reason string, ready bool) {
	l.mu.Lock()
	now := time.Now()
	status := &l.pod.Status.ContainerStatuses[0]
	record := func(r view.Record) {
		r.Seq, r.Observed = uint64(len(l.records)+1), now
		l.records = append(l.records, r)
	}
	if status.State.Running != nil && state.Running == nil {
		status.LastTerminationState = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: status.State.Running.StartedAt, FinishedAt: metav1.NewTime(now)}}
	}
	if state.Running != nil && status.LastTerminationState.Terminated != nil {
		status.RestartCount++
		record(view.Record{Kind: "Restart", Container: "app", From: fmt.Sprint(status.RestartCount - 1), To: fmt.Sprint(status.RestartCount), Reason: "Error"})
	}
	record(view.Record{Kind: "Container", Container: "app", To: word, Reason: reason})
	status.State, status.Ready, status.Started = state, ready, &ready
	want := v1.ConditionFalse
	if ready {
		want = v1.ConditionTrue
	}
	if had := l.pod.Status.Conditions; len(had) == 0 || had[0].Status != want {
		record(view.Record{Kind: "Condition", Subject: "Ready", To: string(want)})
		l.pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: want, LastTransitionTime: metav1.NewTime(now)}}
	}
	changed := l.changed
	l.mu.Unlock()
	if changed != nil {
		changed("u1")
	}
}

func (l *looping) run(ready bool) {
	l.move(v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}, "running", "", ready)
}

// crash has the container run for two seconds, end and wait, as often as a node starts it within a time.
func (l *looping) crash(within time.Duration) {
	end := time.Now().Add(within)
	for backoff := 10 * time.Second; time.Now().Before(end); backoff = min(2*backoff, 5*time.Minute) {
		l.run(l.serves)
		time.Sleep(2 * time.Second)
		l.move(v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, "waiting", "CrashLoopBackOff", false)
		time.Sleep(backoff)
	}
}

// A crash loop is one alert, whether the container counts as ready between its ends or never does, and one Event for each change of the
// alert's state.
func TestCrashLoop_IsOneAlert(t *testing.T) {
	for _, serves := range []bool{true, false} {
		t.Run(fmt.Sprintf("ready while it runs: %t", serves), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newLooping(serves)
				var mu sync.Mutex
				var events []string
				c := Default()
				c.Pack = true
				a, err := New(c, Process{Source: node, Node: "n1", StateDir: t.TempDir(), Outputs: Outputs{Events: true},
					Event: func(about v1.ObjectReference, _, reason, message string) {
						mu.Lock()
						defer mu.Unlock()
						events = append(events, reason+" "+about.Name+about.FieldPath+" "+strings.Fields(message)[0])
					}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- a.Run(ctx) }()
				synctest.Wait()
				said := func() (list []string) {
					for _, raised := range a.Alerts() {
						list = append(list, string(raised.State)+" "+raised.Rule)
					}
					return list
				}
				node.crash(time.Hour)
				synctest.Wait()
				if got := said(); len(got) != 1 || got[0] != string(alert.Firing)+" KubePodCrashLooping" {
					t.Errorf("after an hour the alerts are %v, want one of KubePodCrashLooping that fires", got)
				}
				node.run(true)
				time.Sleep(time.Hour)
				synctest.Wait()
				for _, left := range said() {
					if strings.HasPrefix(left, string(alert.Firing)) {
						t.Errorf("an hour after its end %s", left)
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				want := "AlertFiring webspec.containers{app} KubePodCrashLooping, AlertResolved webspec.containers{app} KubePodCrashLooping"
				if got := strings.Join(events, ", "); got != want {
					t.Errorf("the events are %s, want %s", got, want)
				}
			})
		})
	}
}
