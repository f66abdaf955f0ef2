package logind

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWithoutABus(t *testing.T) {
	host := &Host{Address: "unix:path=/nowhere/bus"}
	if _, err := host.Announcements(t.Context()); err == nil {
		t.Error("a bus was found where there is none")
	}
	if _, _, err := host.Delay(t.Context()); err == nil {
		t.Error("a lock was taken without a bus")
	}
}
