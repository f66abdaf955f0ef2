package eviction

import (
	"strings"
	"testing"
	"time"
)

func TestThresholdsOfAConfig(t *testing.T) {
	got, err := Config{
		Hard:            map[string]string{"nodefs.available": "10%", "memory.available": "100Mi", "pid.available": "1k", "nodefs.inodesFree": "0%"},
		Soft:            map[string]string{"memory.available": "5%", "nodefs.available": "100%"},
		SoftGracePeriod: map[string]string{"memory.available": "1m30s", "nodefs.available": "1s"},
		MinimumReclaim:  map[string]string{"memory.available": "50Mi", "nodefs.available": "2%"},
	}.Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	want := []Threshold{
		{Signal: MemoryAvailable, Below: Amount{Number: 100 << 20}, MinReclaim: Amount{Number: 50 << 20}},
		{Signal: MemoryAvailable, Below: Amount{Share: 0.05}, Grace: 90 * time.Second, MinReclaim: Amount{Number: 50 << 20}},
		{Signal: NodeFSAvailable, Below: Amount{Share: 0.1}, MinReclaim: Amount{Share: 0.02}},
		{Signal: PIDAvailable, Below: Amount{Number: 1000}},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("threshold %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
	if _, err := (Config{Hard: DefaultHard()}).Thresholds(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	if got, err := (Config{Hard: Disabled()}).Thresholds(); err != nil || len(got) != 0 {
		t.Errorf("disabled: got %+v, %v; want none", got, err)
	}
}

func TestWhatIsWrongWithAConfig(t *testing.T) {
	for _, c := range []struct {
		story  string
		config Config
		want   string
	}{
		{"no such signal", Config{Hard: map[string]string{"ram": "1Gi"}}, "hard[ram]: is not known; there are memory.available, "},
		{"no quantity", Config{Hard: map[string]string{"memory.available": "much"}}, `hard[memory.available]: "much": want a quantity`},
		{"nothing", Config{Hard: map[string]string{"memory.available": "0"}}, "want a quantity above zero"},
		{"negative", Config{Hard: map[string]string{"memory.available": "-1Gi"}}, "want a quantity above zero"},
		{"more than all", Config{Hard: map[string]string{"memory.available": "101%"}}, "want a share from 0% to 100%"},
		{"not a number", Config{Hard: map[string]string{"memory.available": "NaN%"}}, "want a share from 0% to 100%"},
		{"soft without grace", Config{Soft: map[string]string{"memory.available": "1Gi"}}, "soft[memory.available]: needs a softGracePeriod"},
		{"no time", Config{SoftGracePeriod: map[string]string{"memory.available": "soon"}}, `softGracePeriod[memory.available]: "soon": want a time`},
		{"reclaim of nothing known", Config{MinimumReclaim: map[string]string{"x": "1Gi"}}, "minimumReclaim[x]: is not known"},
	} {
		if _, err := c.config.Thresholds(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.story, err, c.want)
		}
	}
}
