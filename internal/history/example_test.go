package history_test

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/podstatus"
)

func Example() {
	store := history.New(history.Options{}) // with File, it survives a restart; Run writes it
	noon := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

	pending := &v1.PodStatus{Phase: v1.PodPending}
	running := &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
		Name: "db", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}}}
	store.Changed(podstatus.Change{UID: "7c1", Namespace: "shop", Name: "web-0", Old: pending, New: running, Version: 1, At: noon})
	store.Accepted("7c1", 1, noon.Add(30*time.Millisecond))
	store.Add(history.Ref{UID: "7c1", Namespace: "shop", Name: "web-0"}, history.Record{
		Observed: noon.Add(10 * time.Second), Kind: history.KindProbe, Subject: "readiness", Container: "db",
		From: "passed", To: "failed", Message: "connection refused",
	})

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for event := range store.Watch(ctx, 0) {
		r := event.Record
		fmt.Printf("%s %s %s%s: %q → %q %q\n", r.Observed.Format(time.TimeOnly), r.Kind, r.Subject, r.Container, r.From, r.To, r.Message)
		if r.Kind == history.KindProbe {
			break
		}
	}
	// Output:
	// 12:00:00 Phase : "Pending" → "Running" ""
	// 12:00:00 Container db: "" → "running" ""
	// 12:00:10 Probe readinessdb: "passed" → "failed" "connection refused"
}
