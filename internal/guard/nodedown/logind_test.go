//go:build systemd

package nodedown

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/node/shutdown/logind"
)

// Under a real logind (make guard-systemd) the shutdown is delayed while the watch runs, and not after it.
func TestRealLogind_AShutdownIsDelayed(t *testing.T) {
	inhibitors := func() string {
		out, err := exec.CommandContext(t.Context(), "systemd-inhibit", "--list", "--no-pager").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	nothing := func(context.Context) error { return nil }
	w := New(Options{Host: &logind.Host{}, Stop: nothing, Start: nothing})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for !strings.Contains(inhibitors(), "statusd") {
		time.Sleep(50 * time.Millisecond)
	}
	t.Log(inhibitors())
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for strings.Contains(inhibitors(), "statusd") {
		time.Sleep(50 * time.Millisecond)
	}
}
