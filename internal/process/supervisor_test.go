package process

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestSupervisorOfTheEnvironment(t *testing.T) {
	cases := []struct {
		name, pid string
		want      time.Duration
	}{
		{"watchdog for anybody", "", 2 * time.Second},
		{"watchdog for this process", strconv.Itoa(os.Getpid()), 2 * time.Second},
		{"watchdog for another process", "1", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("NOTIFY_SOCKET", "/run/notify")
			t.Setenv("WATCHDOG_USEC", "2000000")
			t.Setenv("WATCHDOG_PID", c.pid)
			if c.pid == "" {
				os.Unsetenv("WATCHDOG_PID")
			}
			if got := SupervisorFromEnvironment(); got.Socket != "/run/notify" || got.Watchdog != c.want {
				t.Errorf("got %+v, want a watchdog of %s", got, c.want)
			}
			for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
				if value, set := os.LookupEnv(name); set {
					t.Errorf("%s=%s is still there for containers to see", name, value)
				}
			}
		})
	}
}
