package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// healthy is a machine of 2 CPUs with room for everything.
func healthy() Reading {
	return Reading{
		Addresses: []string{"192.0.2.1", "2001:db8::1"},
		CPUs:      2, MemoryTotal: 4 << 30, MemoryAvailable: 2 << 30,
		DiskTotal: 100 << 30, DiskAvailable: 50 << 30, Inodes: 1000, InodesFree: 500,
		PIDs: 1000, PIDsUsed: 100,
	}
}

// Each line of a story is a reading some time after the last one; the answer is what the
// conditions say then.
func TestConditionStories(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	datadriven.Walk(t, "testdata/conditions", func(t *testing.T, path string) {
		now := start
		var p pressures
		var said []v1.NodeCondition
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			after, memory, disk, inodes, pids := "0s", 2048, 50, 50, 10
			var notReady, unread string
			d.MaybeScanArgs(t, "after", &after)
			d.MaybeScanArgs(t, "memoryMiB", &memory)
			d.MaybeScanArgs(t, "disk", &disk)
			d.MaybeScanArgs(t, "inodes", &inodes)
			d.MaybeScanArgs(t, "pids", &pids)
			d.MaybeScanArgs(t, "not-ready", &notReady)
			d.MaybeScanArgs(t, "unread", &unread)
			wait, err := time.ParseDuration(after)
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(wait)
			r := healthy()
			r.MemoryAvailable = uint64(memory) << 20
			r.DiskAvailable = r.DiskTotal * uint64(disk) / 100
			r.InodesFree = r.Inodes * uint64(inodes) / 100
			r.PIDsUsed = r.PIDs * uint64(pids) / 100
			f := findings{}
			if unread != "" {
				f.unread = errors.New(unread)
			} else {
				p = p.after(r, DefaultThresholds(), now)
			}
			f.pressures = p
			if notReady != "" {
				f.notReady = errors.New(notReady)
			}
			said = conditions(f, DefaultThresholds().Clear, said, now)
			var b strings.Builder
			for _, c := range said {
				fmt.Fprintf(&b, "%-14s %-7s since %-5s %s: %s\n", c.Type, c.Status, c.LastTransitionTime.Sub(start), c.Reason, c.Message)
			}
			return b.String()
		})
	})
}

func TestPressureSurvivesARestart(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	api := []v1.NodeCondition{
		{Type: v1.NodeMemoryPressure, Status: v1.ConditionTrue},
		{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse},
		{Type: v1.NodePIDPressure, Status: v1.ConditionUnknown},
		{Type: "example.com/Foreign", Status: v1.ConditionTrue},
	}
	if got, want := remembered(api, now), (pressures{memory: now}); got != want {
		t.Errorf("got %+v, want memory pressure only, as if measured now", got)
	}
}

// Whatever the readings, conditions are complete, times never run backwards, a threshold
// crossed is pressure at once, and pressure ends only after a quiet period.
func TestConditionsHoldTheirPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := DefaultThresholds()
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		var p pressures
		var said []v1.NodeCondition
		var crossed time.Time
		for range rapid.IntRange(1, 40).Draw(t, "readings") {
			now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			r := healthy()
			r.MemoryAvailable = rapid.SampledFrom([]uint64{0, limits.MemoryAvailable - 1, limits.MemoryAvailable, 2 << 30}).Draw(t, "memory")
			if r.MemoryAvailable < limits.MemoryAvailable {
				crossed = now
			}
			p = p.after(r, limits, now)
			before := said
			said = conditions(findings{pressures: p}, limits.Clear, before, now)
			if len(said) != 4 {
				t.Fatalf("got %d conditions, want 4", len(said))
			}
			got := find(said, v1.NodeMemoryPressure).Status == v1.ConditionTrue
			if want := !crossed.IsZero() && now.Sub(crossed) < limits.Clear; got != want {
				t.Fatalf("memory pressure is %v, but the threshold was last crossed %v ago", got, now.Sub(crossed))
			}
			for _, c := range said {
				old := find(before, c.Type)
				if old != nil && c.LastTransitionTime.Before(&old.LastTransitionTime) {
					t.Fatalf("%s: transition time went back from %v to %v", c.Type, old.LastTransitionTime, c.LastTransitionTime)
				}
				if old != nil && old.Status == c.Status && !c.LastTransitionTime.Equal(&old.LastTransitionTime) {
					t.Fatalf("%s: transition time moved without a transition", c.Type)
				}
				if !c.LastHeartbeatTime.Equal(&metav1.Time{Time: now}) {
					t.Fatalf("%s: heartbeat is %v, want %v", c.Type, c.LastHeartbeatTime, now)
				}
			}
		}
	})
}

func TestFileSystemWithoutInodeCountsIsNotUnderPressure(t *testing.T) {
	r := healthy()
	r.Inodes, r.InodesFree = 0, 0
	if p := (pressures{}).after(r, DefaultThresholds(), time.Now()); p != (pressures{}) {
		t.Errorf("got %+v, want no pressure", p)
	}
}

func TestPressureThatSomethingElseDecides(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	before := pressures{memory: now, disk: now.Add(-time.Second), pid: now.Add(-time.Minute)}
	got := before.decided([]v1.NodeConditionType{v1.NodeDiskPressure}, now)
	if want := (pressures{disk: now, pid: now.Add(-time.Minute)}); got != want {
		t.Errorf("got %+v, want %+v: memory and disk are decided, process IDs only if they are named", got, want)
	}
}
