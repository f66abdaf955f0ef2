package kubeletapi

import (
	"testing"
	"time"
)

func TestUsageOfTheMachineIsThatOfProc(t *testing.T) {
	stat := []byte("cpu  100 20 300 4000 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nbtime 1700000000\n")
	memory := []byte("MemTotal:       1000 kB\nMemFree:         300 kB\nInactive(file):  200 kB\nAnonPages:        90 kB\n")
	got := parseUsage(stat, memory)
	want := Usage{
		CPUNanoseconds: (100 + 20 + 300 + 6 + 7) * uint64(10*time.Millisecond), BootedAt: time.Unix(1700000000, 0),
		MemoryUsage: 700 << 10, MemoryWorkingSet: 500 << 10, MemoryAvailable: 500 << 10, MemoryRSS: 90 << 10,
	}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := parseUsage(nil, nil); got != (Usage{}) {
		t.Errorf("of nothing: %+v", got)
	}
	if now, err := readUsage(); err != nil || now.CPUNanoseconds == 0 || now.MemoryWorkingSet == 0 || now.BootedAt.After(time.Now()) {
		t.Errorf("of this machine: %+v, %v", now, err)
	}
}

func TestTheRateOfTheCPUsIsThatOfTwoReadings(t *testing.T) {
	var r rates
	begin := time.Unix(1700000000, 0)
	reading := func(after time.Duration, cpu time.Duration) *uint64 {
		usage := Usage{At: begin.Add(after), CPUNanoseconds: uint64(cpu)}
		r.complete(&usage)
		return usage.NanoCores
	}
	if rate := reading(0, time.Second); rate != nil {
		t.Errorf("of one reading: %d", *rate)
	}
	if rate := reading(10*time.Second, 6*time.Second); rate == nil || *rate != 500_000_000 {
		t.Errorf("of two readings: %v, want half a CPU", rate)
	}
	if rate := reading(10*time.Second+time.Millisecond, 7*time.Second); rate == nil || *rate != 500_000_000 {
		t.Errorf("too soon after: %v, want the rate of before", rate)
	}
	if rate := reading(time.Minute, 0); rate != nil {
		t.Errorf("after a counter went back: %d", *rate)
	}
}
