package eviction

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestPressure looks at a machine again and again: hard threshold 10, soft threshold 20 with
// a grace of 30 s, minimum reclaim 5, transition period 1 min.
func TestPressure(t *testing.T) {
	thresholds := []Threshold{
		{Signal: MemoryAvailable, Below: Amount{Number: 10}, MinReclaim: Amount{Number: 5}},
		{Signal: MemoryAvailable, Below: Amount{Share: 0.2}, Grace: 30 * time.Second},
	}
	type look struct {
		after     int // seconds
		available uint64
		want      string
	}
	for _, c := range []struct {
		story string
		looks []look
	}{
		{"enough", []look{{0, 50, "[] []"}}},
		{"exactly the threshold is enough", []look{{0, 20, "[] []"}}},
		{"hard at once", []look{{0, 9, "[hard] [MemoryPressure]"}}},
		{"soft after its grace", []look{{0, 19, "[] [MemoryPressure]"}, {20, 19, "[] [MemoryPressure]"}, {30, 19, "[soft] [MemoryPressure]"}}},
		{"soft that ends in time", []look{{0, 19, "[] [MemoryPressure]"}, {20, 21, "[] [MemoryPressure]"}, {40, 19, "[] [MemoryPressure]"}, {60, 19, "[] [MemoryPressure]"}}},
		{"both", []look{{0, 9, "[hard] [MemoryPressure]"}, {30, 9, "[hard soft] [MemoryPressure]"}}},
		{"not enough reclaimed", []look{{0, 9, "[hard] [MemoryPressure]"}, {1, 14, "[hard] [MemoryPressure]"}, {2, 15, "[] [MemoryPressure]"}}},
		{"minimum reclaim counts only once it was due", []look{{0, 14, "[] [MemoryPressure]"}}},
		{"the condition stays for the transition period", []look{{0, 9, "[hard] [MemoryPressure]"}, {10, 50, "[] [MemoryPressure]"}, {59, 50, "[] [MemoryPressure]"}, {60, 50, "[] []"}}},
	} {
		var p pressure
		for _, l := range c.looks {
			now := noon.Add(time.Duration(l.after) * time.Second)
			var due []Threshold
			p, due = p.next(thresholds, Observations{MemoryAvailable: {Available: l.available, Capacity: 100}}, now)
			kinds := []string{}
			for _, d := range due {
				kind := "soft"
				if d.hard() {
					kind = "hard"
				}
				kinds = append(kinds, kind)
			}
			if got := fmt.Sprintf("%v %v", kinds, p.conditions(time.Minute, now)); got != l.want {
				t.Errorf("%s: after %d s with %d: got %s, want %s", c.story, l.after, l.available, got, l.want)
			}
		}
	}
}

func TestWhatIsNotReadCrossesNothing(t *testing.T) {
	thresholds, err := Config{Hard: DefaultHard()}.Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	if got := crossed(thresholds, Observations{MemoryAvailable: {Available: 1 << 30, Capacity: 1 << 31}, NodeFSInodesFree: {}}, false); len(got) > 0 {
		t.Errorf("got %+v, want nothing: the disk was not read, and the file system counts no inodes", got)
	}
}

func TestConditionsOfSignals(t *testing.T) {
	want := map[Signal]v1.NodeConditionType{
		MemoryAvailable: v1.NodeMemoryPressure, NodeFSAvailable: v1.NodeDiskPressure,
		NodeFSInodesFree: v1.NodeDiskPressure, PIDAvailable: v1.NodePIDPressure,
	}
	for _, s := range Signals() {
		if got := s.condition(); got != want[s] {
			t.Errorf("%s: got %s, want %s", s, got, want[s])
		}
	}
}
