package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/node"
)

func TestWhatIsWrongWithEvictionIsSaidByField(t *testing.T) {
	config := Embedded("n")
	config.Eviction.Hard = map[string]string{"memory.available": "much", "ram": "1Gi"}
	config.Eviction.Soft = map[string]string{"nodefs.available": "20%"}
	config.Eviction.MaxPodGracePeriod = -time.Second
	err := config.Validate()
	for _, want := range []string{
		`config: eviction: hard[memory.available]: "much"`, "config: eviction: hard[ram]: is not known",
		"config: eviction: soft[nodefs.available]: needs a softGracePeriod", "config: eviction.maxPodGracePeriod: -1s",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What the hard thresholds keep free is not allocatable.
func TestTheNodeKeepsFreeWhatTheHardThresholdsSay(t *testing.T) {
	config := Embedded("n")
	config.Eviction.Hard = map[string]string{"memory.available": "25%", "nodefs.available": "10Gi", "nodefs.inodesFree": "0%"}
	a := &Agent{config: config, machine: &addressBook{last: node.Reading{MemoryTotal: 8 << 30, DiskTotal: 100 << 30, Inodes: 1000, PIDs: 100}}}
	want := node.Thresholds{MemoryAvailable: 2 << 30, DiskAvailable: 0.1, PIDsAvailable: 0.05, Clear: 5 * time.Minute}
	if got := a.thresholds(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
