package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/status"
)

// What an agent knows of itself makes a verdict: each row is a healthy agent of a cluster with one thing wrong, looked at
// every 5 s for the time given.
func TestVerdictOfTheAgentOnItself(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no"))
	for _, c := range []struct {
		name    string
		lasts   time.Duration
		change  func(f *evidence, now time.Time)
		health  guard.Health
		reasons string
		do      string
	}{
		{"all is well", 5 * time.Minute, func(*evidence, time.Time) {}, guard.Healthy, "", ""},
		{"standalone", 5 * time.Minute, func(f *evidence, _ time.Time) { f.joined, f.renewed, f.registered = false, time.Time{}, false }, guard.Healthy, "", ""},
		{"a lock is stuck", time.Minute, func(f *evidence, now time.Time) {
			f.locks, f.at = asked{at: now, took: now.Sub(begin), hangs: true}, begin
		}, guard.Unhealthy, "SyncLoopStuck", ""},
		{"a lock is stuck before the parts have answered once", time.Minute, func(f *evidence, now time.Time) {
			*f = evidence{locks: asked{at: now, took: now.Sub(begin), hangs: true}}
		}, guard.Unhealthy, "SyncLoopStuck", ""},
		{"a lock was waited for once", time.Minute, func(f *evidence, now time.Time) {
			if now.Equal(begin.Add(30 * time.Second)) {
				f.locks = asked{at: now, took: 3 * time.Second, hangs: true}
			}
		}, guard.Healthy, "", ""},
		{"the API server is down", 5 * time.Minute, func(f *evidence, _ time.Time) {
			f.report, f.renewed = errors.New("dial tcp: connection refused"), begin
			f.watch, f.pending = f.report, []status.Pending{{Since: begin, Err: f.report}}
		}, guard.Degraded, "APIServerUnreachable", "bring back the API server"},
		{"the API server answers with errors of its own", 5 * time.Minute, func(f *evidence, _ time.Time) {
			f.report, f.renewed = apierrors.NewInternalError(errors.New("etcd")), begin
		}, guard.Degraded, "APIServerUnreachable", "bring back the API server"},
		{"the API server refuses the node", 5 * time.Minute, func(f *evidence, _ time.Time) { f.report, f.renewed = forbidden, begin }, guard.Degraded, "LeaseStale WritesRefused", "find out why"},
		{"the lease alone is not renewed", 5 * time.Minute, func(f *evidence, _ time.Time) { f.renewed = begin }, guard.Unhealthy, "LeaseStale", ""},
		{"the node was never registered", 5 * time.Minute, func(f *evidence, _ time.Time) { f.renewed = time.Time{} }, guard.Degraded, "NotRegistered", ""},
		{"statuses are not taken", 5 * time.Minute, func(f *evidence, _ time.Time) {
			f.pending = []status.Pending{{Since: begin, Err: forbidden}, {Since: begin}}
		}, guard.Degraded, "StatusBehind", ""},
		{"statuses wait for something else, or a field is refused", 5 * time.Minute, func(f *evidence, _ time.Time) {
			f.pending = []status.Pending{{Since: begin, Reason: "its containers run"}, {Since: begin, Err: forbidden, Refused: []string{"status.qosClass"}}}
		}, guard.Healthy, "", ""},
		{"the pods of the API are not followed", 5 * time.Minute, func(f *evidence, _ time.Time) { f.watch = forbidden }, guard.Degraded, "SourceSilent", ""},
		{"they are not, and statuses are not taken", 5 * time.Minute, func(f *evidence, _ time.Time) {
			f.watch, f.pending = forbidden, []status.Pending{{Since: begin, Err: forbidden}}
		}, guard.Unhealthy, "SourceSilent StatusBehind", ""},
		{"the manifests were never read", 5 * time.Minute, func(f *evidence, _ time.Time) { f.manifests = errors.New("not read yet") }, guard.Degraded, "SourceSilent", ""},
		{"the runtime fails", 5 * time.Minute, func(f *evidence, now time.Time) { f.pods.err = errors.New("input/output error") }, guard.Degraded, "SourceSilent", ""},
		{"the runtime hangs", 2 * time.Minute, func(f *evidence, now time.Time) {
			f.pods = asked{at: now, took: now.Sub(begin), hangs: true, since: begin}
		}, guard.Degraded, "SourceSilent PLEGSlow", ""},
		{"the runtime hangs for minutes", 5 * time.Minute, func(f *evidence, now time.Time) {
			f.pods = asked{at: now, took: now.Sub(begin), hangs: true, since: begin}
		}, guard.Unhealthy, "PLEGStale SourceSilent PLEGSlow", ""},
		{"the disk is full", time.Minute, func(f *evidence, _ time.Time) { f.disk.Free = 4096 }, guard.Degraded, "DiskFull", "free space"},
		{"the disk takes no write", time.Minute, func(f *evidence, _ time.Time) { f.disk.Err = "journal.db: input/output error" }, guard.Degraded, "DiskFull", "free space on the disk of the kubelet's root: the disk of the kubelet's root cannot be written: journal.db: input/output error"},
		{"the certificate has expired", time.Minute, func(f *evidence, now time.Time) { f.certificate = guard.Read(now, begin) }, guard.Degraded, "CertificateExpired", "renew"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var state guard.State
			var verdict guard.Verdict
			for now := begin; !now.After(begin.Add(c.lasts)); now = now.Add(guardInterval) {
				f := evidence{
					at: now, locks: asked{at: now, since: now}, pods: asked{at: now, since: now}, joined: true, registered: true,
					renewed: now.Truncate(10 * time.Second), disk: guard.Disk{Free: 1 << 30, Total: 1 << 32}, certificate: guard.Read(now, begin.Add(time.Hour)),
				}
				c.change(&f, now)
				verdict, state = guard.Judge(f.judged(now, guard.Process{Exists: true, Sure: true, PID: 7, Started: begin.Add(-time.Hour)}), state, now)
			}
			var reasons []string
			for _, r := range verdict.Reasons {
				reasons = append(reasons, r.Code)
			}
			if got := strings.Join(reasons, " "); verdict.Health != c.health || got != c.reasons || !strings.HasPrefix(verdict.Do, c.do) {
				t.Errorf("got %s (%s), do %q; want %s (%s), do %q\n%+v", verdict.Health, got, verdict.Do, c.health, c.reasons, c.do, verdict.Reasons)
			}
		})
	}
}
