package observer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
)

func TestTheGuardCountsDriftAlone(t *testing.T) {
	now := time.Unix(1000, 0)
	of := func(kind audit.Kind, drift bool, age time.Duration) audit.Difference {
		d := difference(kind, "a", drift)
		d.Since = now.Add(-age)
		return d
	}
	address := of(audit.KubeletBehindRuntime, true, time.Hour) // which an admission policy may have changed
	address.Subject = "podIP"
	answer := audit.Answer{At: now}
	sides := map[audit.Side]audit.Answer{audit.SideAPI: answer, audit.SideKubelet: answer}
	report := audit.Report{At: now, Sides: sides, Differences: []audit.Difference{
		of(audit.APIBehindKubelet, true, time.Minute), of(audit.APIBehindKubelet, true, time.Hour), of(audit.APIBehindKubelet, false, 2*time.Hour),
		of(audit.KubeletBehindRuntime, true, 0), address, of(audit.LeaseStale, true, time.Hour),
	}}
	want := guard.Read(now, guard.Behind{APIBehindKubelet: 2, APIBehindKubeletOldest: time.Hour, KubeletBehindRuntime: 1})
	if got := behind(report, now); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := behind(audit.Report{}, now); got.Known {
		t.Errorf("got %+v before the first audit", got)
	}
}

// With a guard, the query API has its verdict, and the history of the node.
func TestObserver_WithAGuard_ServesItsVerdict(t *testing.T) {
	w := newWorld(t)
	pid := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(pid, fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := w.observer(func(c *Config) {
		c.Guard.Enabled, c.Guard.Unit, c.Guard.RuntimeUnit, c.Kubelet.Process, c.Guard.HealthzURL = true, "", "", pid, ""
		c.Kubelet.URL, c.CRIEndpoint = "", "unix://"+filepath.Join(t.TempDir(), "missing.sock")
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	await(t, "a verdict", func() bool { return !o.guard.Report().At.IsZero() && o.guard.Report().PID == os.Getpid() })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
