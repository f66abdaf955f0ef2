package observer

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/wake"
)

// auditor folds facts into reports. It belongs to the goroutine that audits.
type auditor interface {
	Audit(audit.Facts) audit.Report
	// Due is when the next difference becomes drift by its age alone; zero: never.
	Due() time.Time
	// Stale are the sides that must answer again before a difference can be drift.
	Stale() []audit.Side
	State() []byte
}

const (
	// auditDelay is how long changes are collected before they are audited.
	auditDelay = 50 * time.Millisecond
	// share is how much longer than an audit the pause after it is at least: a tenth of a core.
	share = 9
	// idle is how often an audit is made though nothing has happened and nothing is due: that time passes
	// is news too, as for a lease.
	idle = 5 * time.Second
	// saveInterval is how often what the auditor has measured is written to the disk. Drift is at once: the next observer
	// must not announce it again, however this one ends.
	saveInterval = time.Minute
)

// changed takes that a side has something new. changed returns at once.
func (o *Observer) changed(side audit.Side, uid types.UID) {
	o.log.Debug("side changed", "side", side, "uid", uid)
	o.sides.refreshAfter(side, uid)
	wake.Up(o.news)
}

// follow audits whenever there is news, until ctx ends.
func (o *Observer) follow(ctx context.Context) error {
	pause := max(auditDelay, share*o.look())
	saved := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer close(o.ended)
	for {
		timer.Reset(o.untilDue(time.Now()))
		select {
		case <-ctx.Done():
			o.save()
			return nil
		case o.beat <- struct{}{}:
			continue
		case <-timer.C:
		case <-o.news:
			select { // others that belong to the same event
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		pause = max(auditDelay, share*o.look())
		if now := time.Now(); now.Sub(saved) >= saveInterval {
			saved = now
			o.save()
			o.retain(now)
		}
	}
}

// alive returns unless the goroutine that audits is stuck.
func (o *Observer) alive() {
	select {
	case <-o.beat:
	case <-o.ended:
	}
}

// untilDue is how long to wait for news.
func (o *Observer) untilDue(now time.Time) time.Duration {
	due := o.auditor.Due()
	if due.IsZero() {
		return idle
	}
	return min(max(due.Sub(now), auditDelay), idle)
}

// look audits what the sides know now, and returns how long that took.
func (o *Observer) look() time.Duration {
	begin := time.Now()
	facts := o.sides.facts(o.node, begin)
	report := o.auditor.Audit(facts)
	before := o.view.Load()
	after := newView(facts, report)
	if report.NodeMissing && !before.report.NodeMissing {
		o.log.Warn("the API has no node of this name; if it is wrong, set nodeName", "node", o.node)
	}
	list := steps(before.report.Differences, report.Differences)
	news := o.record(before, after, list, begin)
	o.view.Store(after)
	o.noteKnown(after)
	for uid := range news {
		o.console.Announce(uid)
	}
	o.publish(after, list)
	if slices.ContainsFunc(list, func(s step) bool { return s.from == drifted || s.to == drifted }) {
		o.save()
	}
	o.sides.refreshFor(&report, o.auditor.Stale())
	took := time.Since(begin)
	o.metrics.audits.Observe(took.Seconds())
	return took
}

// record adds new facts to the history, and returns the UIDs of the pods with new records.
func (o *Observer) record(before, after *view, list []step, at time.Time) map[types.UID]bool {
	news := map[types.UID]bool{}
	for uid, s := range after.pods {
		if o.recorder.pod(uid, s, at) {
			news[uid] = true
		}
		if s.own {
			after.deliveries[uid] = o.recorder.delivery(uid)
		}
	}
	for _, uid := range o.recorder.removed(after, at) {
		news[uid] = true
	}
	for i := range list {
		o.recorder.step(&list[i], at)
		news[list[i].Pod.UID] = true
		level := slog.LevelDebug // news on its way
		if list[i].to == drifted || list[i].from == drifted {
			level = slog.LevelInfo
		}
		o.log.Log(context.Background(), level, "difference", "kind", list[i].Kind, "pod", list[i].Pod.Namespace+"/"+list[i].Pod.Name, "container", list[i].Container,
			"from", string(list[i].from), "to", string(list[i].to), "message", list[i].Message)
	}
	if len(list) > 0 || nodeChanged(before, after) {
		news[""] = true
	}
	return news
}

// nodeChanged reports whether the served facts of the node itself have changed.
func nodeChanged(before, after *view) bool {
	if before.facts.NodeObject != after.facts.NodeObject || len(before.pods) != len(after.pods) {
		return true
	}
	for side, answer := range after.report.Sides {
		if old := before.report.Sides[side]; old.Known() != answer.Known() || old.Err != answer.Err {
			return true
		}
	}
	return false
}

// publish brings what became of differences to metrics, events, the condition and repairs.
func (o *Observer) publish(v *view, list []step) {
	o.metrics.count(list)
	o.events.steps(v, list)
	if o.condition != nil {
		o.condition.Set(truthful(&v.report, len(v.pods)))
	}
	if o.repairs != nil && len(v.drift) > 0 {
		wake.Up(o.repairs.news)
	}
}

// retain has the history forget, after a while, the pods that went while no observer ran.
func (o *Observer) retain(now time.Time) {
	v := o.view.Load()
	if v.facts.APIAnswer.Known() && v.facts.KubeletAnswer.Known() {
		o.console.History.Retain(func(uid types.UID) bool {
			_, listed := v.pods[uid]
			return listed || len(v.drift[uid]) > 0
		}, now)
	}
}

// noteKnown lets rules be evaluated once the API has shown its pods: one that is not known yet is not gone. It
// is called by the goroutine that audits.
func (o *Observer) noteKnown(v *view) {
	if answer := v.report.Sides[audit.SideAPI]; !answer.Known() {
		return
	}
	select {
	case <-o.known:
	default:
		close(o.known)
	}
}
