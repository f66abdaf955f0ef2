package history

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// started is a status as a node reports it of a pod with one container.
func started(uid string, ready bool) *v1.PodStatus {
	at := metav1.NewTime(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC))
	readiness := v1.ConditionFalse
	if ready {
		readiness = v1.ConditionTrue
	}
	yes := true
	return &v1.PodStatus{
		Phase: v1.PodRunning, PodIP: "10.0.0.1", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}}, HostIP: "10.0.0.2", HostIPs: []v1.HostIP{{IP: "10.0.0.2"}},
		StartTime: &at, QOSClass: v1.PodQOSBurstable,
		Conditions: []v1.PodCondition{
			{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue, LastTransitionTime: at},
			{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: at},
			{Type: v1.PodReady, Status: readiness, LastTransitionTime: at},
			{Type: v1.ContainersReady, Status: readiness, LastTransitionTime: at},
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: at},
		},
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "web", Image: "docker.io/library/web:1", ImageID: "sha256:1", ContainerID: "process://" + uid, Ready: ready, Started: &yes,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at}},
		}},
	}
}

// BenchmarkMemoryPerPod is what a pod costs after its start, beside the status itself.
func BenchmarkMemoryPerPod(b *testing.B) {
	const pods = 2000
	measure := func(b *testing.B, build func() any) {
		for b.Loop() {
			before := heap()
			kept := build()
			b.ReportMetric(float64(heap()-before)/pods, "B/pod")
			runtime.KeepAlive(kept)
		}
	}
	b.Run("status", func(b *testing.B) {
		measure(b, func() any {
			statuses := make(map[types.UID]*v1.PodStatus)
			for i := range pods {
				uid := fmt.Sprintf("0c5f1f9e-0000-0000-0000-%012d", i)
				statuses[types.UID(uid)] = started(uid, true)
			}
			return statuses
		})
	})
	b.Run("history", func(b *testing.B) {
		measure(b, func() any {
			s := New(Options{})
			for i := range pods {
				start(s, fmt.Sprintf("0c5f1f9e-0000-0000-0000-%012d", i))
			}
			s.Seq()
			return s
		})
	})
}

// start reports the start of a pod, with the API server accepting it.
func start(s *Store, uid string) {
	at := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	c := podstatus.Change{UID: types.UID(uid), Namespace: "shop", Name: "web-" + uid, At: at, Version: 1, First: true,
		Old: &v1.PodStatus{Phase: v1.PodPending}, New: started(uid, false)}
	s.Changed(c)
	c.Old, c.New, c.Version, c.First = c.New, started(uid, true), 2, false
	s.Changed(c)
	s.Accepted(c.UID, 2, at)
	s.Seq()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkFlap is what the record of a change costs in the background.
func BenchmarkFlap(b *testing.B) {
	s := New(Options{})
	statuses := [2]*v1.PodStatus{started("a", false), started("a", true)}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Changed(podstatus.Change{UID: "a", Namespace: "shop", Name: "a", Old: statuses[i%2], New: statuses[(i+1)%2], Version: uint64(i + 1), At: time.Unix(int64(i+1), 0)})
		s.Accepted("a", uint64(i+1), time.Unix(int64(i+1), 0))
		s.Seq()
		i++
	}
}
