package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// well is the evidence of a healthy kubelet that has run for an hour and renews its lease every 10 s.
func well(now time.Time) guard.Evidence {
	ok := guard.Answer{Answered: true, OK: true, Text: "ok"}
	renewed := now.Truncate(10 * time.Second)
	return guard.Evidence{
		Process: guard.Read(now, guard.Process{Exists: true, Sure: true, PID: 100, Started: begin.Add(-time.Hour)}),
		Healthz: guard.Read(now, ok),
		Parts: map[string]guard.Fact[guard.Answer]{
			"ping": guard.Read(now, ok), "log": guard.Read(now, ok), "syncloop": guard.Read(now, ok),
		},
		Lease:        guard.Read(now, guard.Lease{Exists: true, Renewed: renewed, Seen: renewed, Duration: 40 * time.Second}),
		PLEG:         guard.Read(now, guard.PLEG{Relist: 5 * time.Millisecond, LastSeen: now.Add(-time.Second)}),
		Operations:   guard.Read(now, guard.Operations{Count: 20, Mean: time.Millisecond}),
		Runtime:      guard.Read(now, ok),
		Behind:       guard.Read(now, guard.Behind{}),
		APIServer:    guard.Read(now, ok),
		Disk:         guard.Read(now, guard.Disk{Free: 1 << 34, Total: 1 << 36, InodesFree: 1 << 20, Inodes: 1 << 21}),
		Certificate:  guard.Read(now, begin.Add(1000*time.Hour)),
		ShuttingDown: guard.Read(now, false),
	}
}

const lookEvery = 3 * time.Second

// A change is what differs from a healthy kubelet from a second on. Later changes are made over earlier ones.
type change struct {
	from   int // seconds after the begin
	change func(e *guard.Evidence, now, since time.Time)
}

func silent(text string) guard.Answer { return guard.Answer{Text: text} }
func says(text string) guard.Answer   { return guard.Answer{Answered: true, Text: text} }

var (
	code  = func(n int) *int { return &n }
	quiet = func(e *guard.Evidence, now, since time.Time) { // what a kubelet that does nothing any more does not do
		e.Healthz = guard.Read(now, silent("connection refused"))
		e.Parts, e.PLEG, e.Operations = nil, guard.NotKnown[guard.PLEG](now, "no answer"), guard.NotKnown[guard.Operations](now, "no answer")
		e.Lease.Value.Renewed, e.Lease.Value.Seen = since.Truncate(10*time.Second), since.Truncate(10*time.Second)
	}
	dead = func(exit int) func(e *guard.Evidence, now, since time.Time) {
		return func(e *guard.Evidence, now, since time.Time) {
			quiet(e, now, since)
			e.Process = guard.Read(now, guard.Process{Sure: true, ExitCode: code(exit), Ended: since})
		}
	}
	// vain is a process that the guard starts every 30 s and that ends after a second, before it answers.
	vain = func(exit int) func(e *guard.Evidence, now, since time.Time) {
		return func(e *guard.Evidence, now, since time.Time) {
			dead(exit)(e, now, since)
			start := since.Add(now.Sub(since).Truncate(30 * time.Second))
			e.Process.Value.Started, e.Process.Value.Ended = start, start.Add(time.Second)
		}
	}
	noLease = func(e *guard.Evidence, now, since time.Time) {
		e.Lease.Value.Renewed, e.Lease.Value.Seen = since, since
	}
	accepted, refused = guard.Answer{Answered: true, OK: true, Text: "accepted"}, says("failed calling webhook")
	// noLeaseBy is a kubelet that works and does not renew its lease, while the API server answers a dry run so.
	noLeaseBy = func(writes guard.Answer) func(e *guard.Evidence, now, since time.Time) {
		return func(e *guard.Evidence, now, since time.Time) {
			noLease(e, now, since)
			e.Writes = guard.Read(now, writes)
		}
	}
	unregistered = func(e *guard.Evidence, now, _ time.Time) { // it has started just now, and has no Node yet
		e.Process.Value.Started = begin
		e.Lease = guard.Read(now, guard.Lease{})
	}
	apiDown = func(e *guard.Evidence, now, _ time.Time) {
		e.APIServer = guard.Read(now, silent("connection refused"))
		e.Lease = guard.NotKnown[guard.Lease](now, "the API server does not answer")
	}
)

// The table is the documentation of the judgement: what happens, what the verdict is at the end, for
// which reasons, when the kubelet was first unhealthy, and whether a restart would help.
var stories = []struct {
	name      string
	changes   []change
	until     int // seconds
	health    guard.Health
	reasons   string
	unhealthy int // seconds after the begin of the first verdict Unhealthy; 0: never
	helps     bool
	do        string
}{
	{name: "a healthy kubelet", until: 300, health: guard.Healthy},
	{name: "killed: noticed at the second look", until: 30, changes: []change{{9, dead(137)}},
		health: guard.Unhealthy, reasons: "ProcessGone HealthzSilent", unhealthy: 12, helps: true},
	{name: "ended with exit code 0: as dead as with any other (node-problem-detector #861)", until: 30, changes: []change{{9, dead(0)}},
		health: guard.Unhealthy, reasons: "ProcessGone HealthzSilent", unhealthy: 12, helps: true},
	{name: "restarted by an operator between two looks", until: 120, changes: []change{
		{9, dead(0)}, {12, func(e *guard.Evidence, _, since time.Time) { e.Process.Value.Started = since }}},
		health: guard.Healthy},
	{name: "systemd starts it after the network, or runs what comes before it", until: 30, changes: []change{{0, func(e *guard.Evidence, now, since time.Time) {
		dead(0)(e, now, since)
		e.Process.Value.Unit, e.Process.Value.Starting = "activating/start-pre", true
	}}}, health: guard.Degraded, reasons: "HealthzSilent"},
	{name: "frozen by SIGSTOP", until: 30, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, since)
		e.Process.Value.Stopped = true
	}}}, health: guard.Unhealthy, reasons: "ProcessStopped HealthzSilent", unhealthy: 15, helps: true},
	{name: "a zombie", until: 30, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, since)
		e.Process.Value.Zombie = true
	}}}, health: guard.Unhealthy, reasons: "ProcessStopped HealthzSilent", unhealthy: 15, helps: true},
	{name: "frozen by its control group: runs, and neither answers nor renews", until: 60, changes: []change{{10, quiet}},
		health: guard.Unhealthy, reasons: "HealthzSilent LeaseStale", unhealthy: 45, helps: true},
	{name: "deadlocked: answers /healthz and renews no lease, though the API server accepts such writes", until: 100, changes: []change{{10, noLeaseBy(accepted)}},
		health: guard.Unhealthy, reasons: "LeaseStale", unhealthy: 60, helps: true},
	{name: "renews no lease, and whether the API server accepts writes is not known", until: 600, changes: []change{{10, noLease}},
		health: guard.Degraded, reasons: "LeaseStale", do: "find out why the API server does not accept"},
	{name: "a webhook refuses all writes, reads work", until: 600, changes: []change{{10, noLeaseBy(refused)}},
		health: guard.Degraded, reasons: "LeaseStale WritesRefused", do: "find out why the API server does not accept"},
	{name: "etcd has no space: a dry run is accepted, the kubelet's writes are not", until: 600, changes: []change{{10, func(e *guard.Evidence, now, since time.Time) {
		noLeaseBy(accepted)(e, now, since)
		e.Requests = guard.Read(now, guard.Requests{Refused: 2, Codes: "500"})
	}}}, health: guard.Degraded, reasons: "LeaseStale WritesRefused", do: "find out why the API server does not accept"},
	{name: "no writes are accepted: statuses behind and a stale lease have one cause", until: 600, changes: []change{{10, func(e *guard.Evidence, now, since time.Time) {
		noLease(e, now, since)
		e.Behind = guard.Read(now, guard.Behind{APIBehindKubelet: 3, APIBehindKubeletOldest: 3 * time.Minute})
	}}}, health: guard.Degraded, reasons: "LeaseStale StatusBehind", do: "find out why the API server does not accept"},
	{name: "the runtime hangs in lists: Status answers, the kubelet's requests fail, nothing is relisted", until: 300, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		e.PLEG.Value.LastSeen = since
		e.Operations = guard.Read(now, guard.Operations{Count: 20, Errors: 20})
	}}}, health: guard.Unhealthy, reasons: "PLEGStale RuntimeErrors", unhealthy: 204, do: "restart the container runtime"},
	{name: "the runtime hangs in lists, which the audit sees", until: 300, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		e.PLEG.Value.LastSeen = since
		e.Lists = guard.Read(now, silent("no answer within 5s"))
	}}}, health: guard.Unhealthy, reasons: "PLEGStale RuntimeHangs", unhealthy: 204, do: "restart the container runtime"},
	{name: "dead, as systemd knows, and another machine renews its lease", until: 60, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		dead(137)(e, now, since)
		e.Lease.Value.Renewed, e.Lease.Value.Seen = now, now
	}}}, health: guard.Unhealthy, reasons: "ProcessGone HealthzSilent", unhealthy: 12, helps: true},
	{name: "frozen, as systemd and the kernel know, and another machine renews its lease", until: 60, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, since)
		e.Process.Value.Stopped = true
		e.Lease.Value.Renewed, e.Lease.Value.Seen = now, now
	}}}, health: guard.Unhealthy, reasons: "ProcessStopped HealthzSilent", unhealthy: 15, helps: true},
	{name: "its sync loop is stuck, as it says itself", until: 60, changes: []change{{9, func(e *guard.Evidence, now, _ time.Time) {
		e.Parts["syncloop"] = guard.Read(now, says("sync Loop took longer than expected"))
	}}}, health: guard.Unhealthy, reasons: "SyncLoopStuck", unhealthy: 30, helps: true},
	{name: "no relist of containers for four minutes", until: 300, changes: []change{{9, func(e *guard.Evidence, _, since time.Time) {
		e.PLEG.Value.LastSeen = since
	}}}, health: guard.Unhealthy, reasons: "PLEGStale", unhealthy: 204, helps: true},
	{name: "one request fails", until: 60, changes: []change{
		{9, func(e *guard.Evidence, now, _ time.Time) { e.Healthz = guard.Read(now, silent("i/o timeout")) }},
		{12, func(*guard.Evidence, time.Time, time.Time) {}}}, health: guard.Healthy},
	{name: "every other request fails", until: 120, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		if now.Sub(since)/lookEvery%2 == 0 {
			e.Healthz = guard.Read(now, silent("i/o timeout"))
		}
	}}}, health: guard.Healthy},
	{name: "not in the network namespace of the machine: refused, but the lease is renewed (node-problem-detector #439)", until: 600,
		changes: []change{{0, func(e *guard.Evidence, now, _ time.Time) {
			e.Healthz = guard.Read(now, silent("dial tcp 127.0.0.1:10248: connect: connection refused"))
			e.Process = guard.NotKnown[guard.Process](now, "no D-Bus socket")
			e.Parts = nil
		}}}, health: guard.Degraded, reasons: "HealthzSilent"},
	{name: "no systemctl, kubelet 3 minutes old and running (node-problem-detector #666)", until: 600,
		changes: []change{{0, func(e *guard.Evidence, now, _ time.Time) {
			e.Process = guard.NotKnown[guard.Process](now, "systemctl: executable file not found")
			e.Healthz = guard.Read(now, silent("dial tcp 127.0.0.1:10248: connect: connection refused"))
		}}}, health: guard.Degraded, reasons: "HealthzSilent"},
	{name: "not in the PID namespace either: no process found, nothing answers, Node Ready (node-problem-detector #1078)", until: 960,
		changes: []change{{0, func(e *guard.Evidence, now, _ time.Time) {
			e.Process = guard.Read(now, guard.Process{}) // not sure: a search found none
			e.Healthz = guard.Read(now, silent("dial tcp 127.0.0.1:10248: connect: connection refused"))
			e.Parts, e.PLEG, e.Operations = nil, guard.Fact[guard.PLEG]{}, guard.Fact[guard.Operations]{}
		}}}, health: guard.Degraded, reasons: "HealthzSilent"},
	{name: "the process is found no more, but the lease is renewed", until: 120, changes: []change{{9, func(e *guard.Evidence, now, _ time.Time) {
		e.Process = guard.Read(now, guard.Process{})
		e.Lease.Value.Renewed = now
	}}}, health: guard.Degraded, reasons: "ProcessGone"},
	{name: "starting: no answer and an old lease are no signs for a minute", until: 30, changes: []change{{0, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, since.Add(-time.Hour))
		e.Process.Value.Started = begin
	}}}, health: guard.Degraded, reasons: "Starting"},
	{name: "restarted, and not at work yet: the fresh lease is that of the process before", until: 48, changes: []change{{30, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, since)
		e.Process.Value.Started = since.Add(time.Second)
	}}}, health: guard.Degraded, reasons: "Starting"},
	{name: "not started yet: the fresh lease is that of a process before", until: 0, changes: []change{{0, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, since)
		e.Process = guard.Read(now, guard.Process{Sure: true})
	}}}, health: guard.Unknown, reasons: "TooLittleEvidence"},
	{name: "started, and still no lease after a minute", until: 120, changes: []change{{0, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, since.Add(-time.Hour))
		e.Process.Value.Started = begin
	}}}, health: guard.Unhealthy, reasons: "HealthzSilent LeaseStale", unhealthy: 69, helps: true},
	{name: "started, answers and is not registered yet", until: 30, changes: []change{{0, unregistered}},
		health: guard.Degraded, reasons: "Starting"},
	{name: "started and registered after half a minute", until: 36, changes: []change{{0, unregistered}, {30, func(e *guard.Evidence, now, _ time.Time) {
		e.Process.Value.Started, e.Lease.Value.Renewed, e.Lease.Value.Seen = begin, now, now
	}}}, health: guard.Healthy},
	{name: "started, answers and is never registered", until: 100, changes: []change{{0, unregistered}},
		health: guard.Degraded, reasons: "NotRegistered"},
	{name: "runs for an hour, answers and is not registered", until: 21, changes: []change{{0, func(e *guard.Evidence, now, _ time.Time) {
		e.Lease = guard.Read(now, guard.Lease{})
	}}}, health: guard.Degraded, reasons: "NotRegistered"},
	{name: "answers and is not registered, and when it started is not known", until: 60, changes: []change{{0, func(e *guard.Evidence, now, _ time.Time) {
		e.Process = guard.NotKnown[guard.Process](now, "no pid file")
		e.Lease = guard.Read(now, guard.Lease{})
	}}}, health: guard.Unknown, reasons: "TooLittleEvidence"},
	{name: "healthy, and somebody deletes its lease: it makes another", until: 120, changes: []change{
		{9, func(e *guard.Evidence, now, _ time.Time) { e.Lease = guard.Read(now, guard.Lease{}) }},
		{18, func(*guard.Evidence, time.Time, time.Time) {}}}, health: guard.Healthy},
	{name: "the API server is down: the lease says nothing", until: 300, changes: []change{{9, apiDown}},
		health: guard.Degraded, reasons: "APIServerUnreachable", do: "bring back the API server"},
	{name: "the API server is back: the kubelet gets the time to renew", until: 330, changes: []change{
		{9, apiDown}, {300, func(e *guard.Evidence, now, since time.Time) {
			e.Lease.Value.Renewed, e.Lease.Value.Seen = begin, begin
			if now.Sub(since) > 20*time.Second {
				e.Lease.Value.Renewed, e.Lease.Value.Seen = now, now
			}
		}}}, health: guard.Healthy},
	{name: "killed while the API server is down: it runs pods without one", until: 60, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		dead(1)(e, now, since)
		apiDown(e, now, since)
	}}}, health: guard.Unhealthy, reasons: "ProcessGone HealthzSilent APIServerUnreachable", unhealthy: 12, helps: true},
	{name: "the runtime is down", until: 60, changes: []change{{9, func(e *guard.Evidence, now, _ time.Time) {
		e.Runtime = guard.Read(now, silent("connection refused"))
	}}}, health: guard.Degraded, reasons: "RuntimeDown", do: "restart the container runtime"},
	{name: "the runtime is down and nothing is relisted", until: 300, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		e.Runtime = guard.Read(now, silent("connection refused"))
		e.PLEG.Value.LastSeen = since
	}}}, health: guard.Unhealthy, reasons: "PLEGStale RuntimeDown", unhealthy: 204, do: "restart the container runtime"},
	{name: "the disk is full", until: 60, changes: []change{{9, func(e *guard.Evidence, _, _ time.Time) { e.Disk.Value.Free = 4096 }}},
		health: guard.Degraded, reasons: "DiskFull", do: "free space"},
	{name: "no inode is left", until: 60, changes: []change{{9, func(e *guard.Evidence, _, _ time.Time) { e.Disk.Value.InodesFree = 0 }}},
		health: guard.Degraded, reasons: "DiskFull", do: "free space"},
	{name: "the certificate has expired", until: 120, changes: []change{{10, func(e *guard.Evidence, now, since time.Time) {
		noLease(e, now, since)
		e.Certificate = guard.Read(now, since)
	}}}, health: guard.Degraded, reasons: "LeaseStale CertificateExpired", do: "renew its client certificate"},
	{name: "crash loop: systemd starts it every 10 s, it lives for 1 s", until: 120, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		dead(1)(e, now, since)
		e.Process.Value.Unit, e.Process.Value.Restarting = "activating/auto-restart", true
		e.Process.Value.Starts = uint32(now.Sub(since) / (10 * time.Second))
	}}}, health: guard.Unhealthy, reasons: "CrashLooping ProcessGone HealthzSilent LeaseStale", unhealthy: 12, do: "read the kubelet's last log lines"},
	{name: "crash loop of a child: the guard starts it every 30 s, it ends after 1 s, with exit code 0", until: 200, changes: []change{{9, vain(0)}},
		health: guard.Unhealthy, reasons: "CrashLooping ProcessGone HealthzSilent LeaseStale", unhealthy: 12, do: "read the kubelet's last log lines"},
	{name: "crash loop of a child on a full disk: what would help is space", until: 200, changes: []change{{9, func(e *guard.Evidence, now, since time.Time) {
		vain(1)(e, now, since)
		e.Disk.Value.Free = 4096
	}}}, health: guard.Unhealthy, reasons: "CrashLooping ProcessGone HealthzSilent LeaseStale DiskFull", unhealthy: 12, do: "free space"},
	{name: "crash loop of a child on a disk that was full: there is space again, it is started", until: 184, changes: []change{
		{9, func(e *guard.Evidence, now, since time.Time) {
			vain(1)(e, now, since)
			e.Disk.Value.Free = 4096
		}},
		{170, func(e *guard.Evidence, now, since time.Time) {
			dead(1)(e, now, begin)
			e.Process.Value.Started, e.Process.Value.Ended = begin.Add(159*time.Second), begin.Add(160*time.Second)
		}}}, health: guard.Unhealthy, reasons: "ProcessGone HealthzSilent LeaseStale", unhealthy: 12, helps: true},
	{name: "crash loop of a child, mended: one that answers ends it", until: 210, changes: []change{{9, vain(1)},
		{170, func(e *guard.Evidence, _, since time.Time) { e.Process.Value.Started = since }}},
		health: guard.Healthy, unhealthy: 12},
	{name: "restarted five times by an operator, and well since: no crash loop after three minutes", until: 240, changes: []change{
		{9, func(e *guard.Evidence, now, since time.Time) {
			e.Process.Value.Started = since.Add(now.Sub(since).Truncate(6 * time.Second))
		}},
		{40, func(e *guard.Evidence, _, since time.Time) { e.Process.Value.Started = since }}},
		health: guard.Healthy, unhealthy: 30},
	{name: "statuses are behind, and /healthz does not answer", until: 200, changes: []change{{9, func(e *guard.Evidence, now, _ time.Time) {
		e.Healthz = guard.Read(now, silent("i/o timeout"))
		e.Behind = guard.Read(now, guard.Behind{APIBehindKubelet: 3, APIBehindKubeletOldest: 3 * time.Minute})
		e.Lease = guard.NotKnown[guard.Lease](now, "forbidden")
	}}}, health: guard.Unhealthy, reasons: "HealthzSilent StatusBehind", unhealthy: 21, helps: true},
	{name: "statuses are behind, and all else is well", until: 200, changes: []change{{9, func(e *guard.Evidence, now, _ time.Time) {
		e.Behind = guard.Read(now, guard.Behind{APIBehindKubelet: 3, APIBehindKubeletOldest: 3 * time.Minute})
	}}}, health: guard.Degraded, reasons: "StatusBehind"},
	{name: "a slow runtime: slow relists and failed requests", until: 200, changes: []change{{9, func(e *guard.Evidence, now, _ time.Time) {
		e.PLEG.Value.Relist = 20 * time.Second
		e.Operations = guard.Read(now, guard.Operations{Count: 10, Errors: 9})
	}}}, health: guard.Degraded, reasons: "PLEGSlow RuntimeErrors", do: "restart the container runtime"},
	{name: "the clock steps an hour forward: the lease looks old, its renewals do not", until: 200, changes: []change{{9, func(e *guard.Evidence, _, _ time.Time) {
		e.Lease.Value.Renewed = e.Lease.Value.Renewed.Add(-time.Hour)
	}}}, health: guard.Healthy},
	{name: "nothing is known", until: 200, changes: []change{{0, func(e *guard.Evidence, now, _ time.Time) {
		*e = guard.Evidence{Process: guard.NotKnown[guard.Process](now, "no pid file"), Lease: guard.NotKnown[guard.Lease](now, "no kubeconfig")}
	}}}, health: guard.Unknown, reasons: "TooLittleEvidence"},
	{name: "stale and restarted: the lease of the process before is no reason for another restart", until: 63, changes: []change{{0, noLeaseBy(accepted)},
		{63, func(e *guard.Evidence, now, since time.Time) {
			quiet(e, now, begin)
			e.Process.Value.Started = since
		}}},
		health: guard.Unhealthy, reasons: "LeaseStale", unhealthy: 51, do: "give it time: it has started 0 s ago"},
	{name: "killed and restarted: healthy again after two looks", until: 40, changes: []change{{9, dead(137)},
		{30, func(e *guard.Evidence, now, since time.Time) { e.Process.Value.Started = since }}},
		health: guard.Healthy, unhealthy: 12},
}

func TestJudge(t *testing.T) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			var state guard.State
			var v guard.Verdict
			first, last := 0, guard.Health("")
			var trace []string
			for now := begin; !now.After(begin.Add(time.Duration(story.until) * time.Second)); now = now.Add(lookEvery) {
				e := evidence(story.changes, now)
				if p := e.Process.Value; !p.Exists && !p.Started.IsZero() { // the guard's own start
					state = state.Restarted(p.Started)
				}
				v, state = guard.Judge(e, state, now)
				at := int(now.Sub(begin) / time.Second)
				if v.Health == guard.Unhealthy && first == 0 {
					first = at
				}
				if v.Health != last {
					trace, last = append(trace, fmt.Sprintf("%ds %s", at, describe(v))), v.Health
				}
			}
			if v.Health != story.health || codes(v) != story.reasons || first != story.unhealthy || v.Helps != story.helps ||
				!strings.HasPrefix(v.Do, story.do) || (story.do == "") != (v.Do == "") {
				t.Errorf("got %s (%q), first unhealthy at %d s\nwant %s %s, helps %t, do %q, first unhealthy at %d s\n%s",
					describe(v), v.Do, first, story.health, story.reasons, story.helps, story.do, story.unhealthy, strings.Join(trace, "\n"))
			}
		})
	}
}

// play judges and decides at each look of so long a time. A restart begins another process, which answers at once; evidence makes the rest.
func play(t *testing.T, long time.Duration, evidence func(now, started time.Time) guard.Evidence, each func(at time.Duration, v guard.Verdict, d guard.Decision)) (restarts []guard.Restart) {
	t.Helper()
	policy := guard.DefaultPolicy()
	policy.Restart = true
	var state guard.State
	var v guard.Verdict
	started := begin.Add(-time.Hour)
	for now := begin; now.Before(begin.Add(long)); now = now.Add(lookEvery) {
		e := evidence(now, started)
		e.Process.Value.Started = started
		v, state = guard.Judge(e, state, now)
		d := guard.Decide(v, policy, guard.History{Restarts: restarts, Process: e.Process}, now)
		each(now.Sub(begin), v, d)
		if d.Restart != "" {
			restarts = append(restarts, guard.Restart{At: now, Reason: d.Reason})
			state, started = guard.RestartedFor(state, d.Reason, now), now
		}
	}
	return restarts
}

// An API server that accepts no writes restarts nothing, and the kubelet is not healthy before its lease is renewed.
func TestJudge_ReadOnlyAPIServer_RestartsNothing(t *testing.T) {
	for name, writes := range map[string]guard.Fact[guard.Answer]{"refused": guard.Read(begin, refused), "not known": {}} {
		restarts := play(t, 20*time.Minute, func(now, _ time.Time) guard.Evidence {
			e := well(now)
			if now.Sub(begin) > 30*time.Second {
				noLease(&e, now, begin.Add(30*time.Second))
				if writes.Known {
					e.Writes = guard.Read(now, writes.Value)
				}
			}
			return e
		}, func(at time.Duration, v guard.Verdict, _ guard.Decision) {
			if at > 2*time.Minute && v.Health != guard.Degraded {
				t.Errorf("%s: after %v: %s", name, at, describe(v))
			}
		})
		if len(restarts) != 0 {
			t.Errorf("%s: restarts %+v", name, restarts)
		}
	}
}

// When an API server accepts writes again, a kubelet renews its lease at its next try. Until then the lease is stale, and nothing is restarted; then
// the kubelet is healthy within seconds.
func TestJudge_WritesAcceptedAgain_WaitsForTheNextRenewal(t *testing.T) {
	const down, again = 30 * time.Second, 10 * time.Minute
	for _, next := range []time.Duration{again, again + 27*time.Second} {
		restarts := play(t, 20*time.Minute, func(now, _ time.Time) guard.Evidence {
			e := well(now)
			switch at := now.Sub(begin); {
			case at > down && at <= again:
				noLeaseBy(refused)(&e, now, begin.Add(down))
			case at > again && at < next:
				noLeaseBy(accepted)(&e, now, begin.Add(down))
			}
			return e
		}, func(at time.Duration, v guard.Verdict, _ guard.Decision) {
			if v.Health == guard.Unhealthy || at > next+20*time.Second && v.Health != guard.Healthy {
				t.Errorf("renewed after %v: after %v: %s", next, at, describe(v))
			}
		})
		if len(restarts) != 0 {
			t.Errorf("renewed after %v: restarts %+v", next, restarts)
		}
	}
}

// A lease that stays stale after a restart is no reason for another one, and without a renewal by the new process the kubelet is not healthy.
func TestJudge_StaleLeaseAlone_IsRestartedOnce(t *testing.T) {
	restarts := play(t, time.Hour, func(now, _ time.Time) guard.Evidence {
		e := well(now)
		if now.Sub(begin) > 30*time.Second {
			noLeaseBy(accepted)(&e, now, begin.Add(30*time.Second))
		}
		return e
	}, func(at time.Duration, v guard.Verdict, _ guard.Decision) {
		if at > 2*time.Minute && v.Health == guard.Healthy {
			t.Errorf("after %v: %s", at, describe(v))
		}
	})
	if len(restarts) != 1 || restarts[0].Reason != guard.LeaseStale {
		t.Errorf("restarts %+v, want one for %s", restarts, guard.LeaseStale)
	}
}

// Between the end of its start and the sign that it is not registered, a kubelet without a lease is not healthy either.
func TestAKubeletThatIsNotRegisteredIsNeverHealthy(t *testing.T) {
	var state guard.State
	var v guard.Verdict
	for now := begin; now.Before(begin.Add(5 * time.Minute)); now = now.Add(lookEvery) {
		if v, state = guard.Judge(evidence([]change{{0, unregistered}}, now), state, now); v.Health != guard.Degraded {
			t.Errorf("after %v: %s", now.Sub(begin), describe(v))
		}
	}
}

// evidence is that of a story at a time.
func evidence(changes []change, now time.Time) guard.Evidence {
	e := well(now)
	for i, c := range slices.Backward(changes) {
		if since := begin.Add(time.Duration(c.from) * time.Second); !now.Before(since) {
			changes[i].change(&e, now, since)
			break
		}
	}
	return e
}

func codes(v guard.Verdict) string {
	var all []string
	for _, r := range v.Reasons {
		all = append(all, r.Code)
	}
	return strings.Join(all, " ")
}

func describe(v guard.Verdict) string {
	return fmt.Sprintf("%s %s, helps %t", v.Health, codes(v), v.Helps)
}

// A runtime that did not answer once is not restarted, though nothing else is known of the kubelet, or though
// what was wrong before is just over.
func TestOneFailedRequestToTheRuntimeRestartsNothing(t *testing.T) {
	policy := guard.DefaultPolicy()
	policy.RestartRuntime = true
	blind := func(e *guard.Evidence, now, _ time.Time) {
		e.Healthz, e.Lease = guard.NotKnown[guard.Answer](now, "not asked"), guard.NotKnown[guard.Lease](now, "forbidden")
		e.Runtime = guard.NotKnown[guard.Answer](now, "no socket")
	}
	once := func(e *guard.Evidence, now, since time.Time) {
		blind(e, now, since)
		if now.Equal(since) {
			e.Runtime = guard.Read(now, silent("refused"))
		}
	}
	for name, c := range map[string]struct {
		changes []change
		health  guard.Health
	}{
		"nothing is known": {[]change{{0, once}}, guard.Unknown},
		"what was wrong before is over": {[]change{{0, apiDown}, {30, func(e *guard.Evidence, now, since time.Time) {
			if blind(e, now, since); !now.Before(since.Add(lookEvery)) {
				once(e, now, since.Add(lookEvery))
			}
		}}}, guard.Degraded},
	} {
		t.Run(name, func(t *testing.T) {
			var state guard.State
			var v guard.Verdict
			for now := begin; now.Before(begin.Add(time.Minute)); now = now.Add(lookEvery) {
				v, state = guard.Judge(evidence(c.changes, now), state, now)
				if d := guard.Decide(v, policy, guard.History{}, now); d.Restart != "" {
					t.Fatalf("after %v: restarts the %s, %s", now.Sub(begin), d.Restart, describe(v))
				}
			}
			if v.Health != c.health {
				t.Errorf("got %s, want %s", describe(v), c.health)
			}
		})
	}
}

// Evidence that was counted once does not count again: a source that is asked less often than the
// verdict is made cannot fill the row alone.
func TestTheSameAnswerCountsOnce(t *testing.T) {
	var state guard.State
	var v guard.Verdict
	for i := range 100 {
		now := begin.Add(time.Duration(i) * time.Second)
		e := well(now)
		e.Healthz = guard.Read(begin, says("[-]log failed"))
		if v, state = guard.Judge(e, state, now); v.Health != guard.Healthy {
			t.Fatalf("after %d s: %s", i, describe(v))
		}
	}
}

// A process that has taken the place of a frozen one, or of one that has ended, is not restarted for what was wrong with that. Its start is
// read from ticks since a boot of which only the second is known, and so before the last look at the process before.
func TestANewProcessIsNotHeldToTheOldOne(t *testing.T) {
	for name, hurt := range map[string]func(*guard.Process){
		"frozen": func(p *guard.Process) { p.Stopped = true },
		"ended":  func(p *guard.Process) { *p = guard.Process{Sure: true} },
	} {
		for _, early := range []time.Duration{0, 4 * time.Second} {
			t.Run(fmt.Sprintf("%s, %s early", name, early), func(t *testing.T) { holdsNothingAgainst(t, hurt, early) })
		}
	}
}

func holdsNothingAgainst(t *testing.T, hurt func(*guard.Process), early time.Duration) {
	changes := []change{{9, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, since)
		hurt(&e.Process.Value)
	}}, {30, func(e *guard.Evidence, now, since time.Time) {
		quiet(e, now, begin) // its lease is still that of the old one
		e.Process.Value = guard.Process{Exists: true, Sure: true, PID: 2, Started: since.Add(-early)}
	}}}
	policy := guard.DefaultPolicy()
	policy.Restart, policy.CoolDown = true, 0
	var state guard.State
	for i := range 20 {
		now := begin.Add(time.Duration(i) * lookEvery)
		e := evidence(changes, now)
		var v guard.Verdict
		v, state = guard.Judge(e, state, now)
		d := guard.Decide(v, policy, guard.History{Process: e.Process}, now)
		if now.After(begin.Add(29*time.Second)) && d.Restart != "" {
			t.Fatalf("after %d s it is restarted again: %s", i*3, describe(v))
		}
	}
}

// A lease that another program renews is named beside what the supervisor of the process knows.
func TestJudge_LeaseRenewedByAnother_IsNamed(t *testing.T) {
	var state guard.State
	var v guard.Verdict
	for i := range 10 {
		now := begin.Add(time.Duration(i) * lookEvery)
		e := evidence([]change{{9, dead(137)}}, now)
		e.Lease.Value.Renewed, e.Lease.Value.Seen, e.Lease.Value.Writer, e.Lease.Value.Holder = now, now, "kubelet", "node-1"
		v, state = guard.Judge(e, state, now)
	}
	if got := v.Reasons[0].Message; !strings.Contains(got, "by kubelet, for the holder node-1") || strings.Contains(got, "namespaces") {
		t.Errorf("got %q", got)
	}
}

// A lease that another writer has renewed far ahead speaks for no kubelet: a process that was found stopped is unhealthy.
func TestJudge_LeaseOfTheFuture_ContradictsNothing(t *testing.T) {
	for ahead, want := range map[time.Duration]guard.Health{0: guard.Degraded, 24 * time.Hour: guard.Unhealthy} {
		var state guard.State
		var v guard.Verdict
		for i := range 10 {
			now := begin.Add(time.Duration(i) * lookEvery)
			e := evidence(nil, now)
			e.Process.Value.Sure = false
			if i > 2 {
				e.Process.Value.Stopped = true
				e.Lease.Value.Renewed, e.Lease.Value.Seen = now.Add(ahead), now
			}
			v, state = guard.Judge(e, state, now)
		}
		if v.Health != want {
			t.Errorf("renewed %v ahead: got %s (%v), want %s", ahead, v.Health, v.Reasons, want)
		}
	}
}

// A message says what was seen, so that an operator can check it.
func TestReasonsSayWhatWasSeen(t *testing.T) {
	var state guard.State
	var v guard.Verdict
	for i := range 10 {
		now := begin.Add(time.Duration(i) * lookEvery)
		v, state = guard.Judge(evidence([]change{{9, dead(0)}}, now), state, now)
	}
	if got, want := v.Reasons[0].Message, "the process is gone, exit code 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !v.Since.Equal(begin.Add(12*time.Second)) || !v.Reasons[0].Since.Equal(begin.Add(9*time.Second)) {
		t.Errorf("unhealthy since %v for a reason since %v", v.Since, v.Reasons[0].Since)
	}
}
