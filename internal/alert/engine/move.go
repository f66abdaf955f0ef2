package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/text"
)

const (
	// maxRecent is how many resolved alerts are shown, for recentFor.
	maxRecent = 256
	recentFor = 15 * time.Minute
	// maxAlertActions is how many results of actions an alert keeps.
	maxAlertActions = 16
	// maxLabel and maxAnnotation are how long a label and an annotation may be.
	maxLabel      = 1024
	maxAnnotation = 4096
)

// begin makes the alert of a rule that has become true, nil if there are too many.
func (t *turn) begin(r *ruleset.Rule, container string) *tracked {
	if len(t.alerts) >= t.options.maxAlerts() {
		t.metrics.dropped.WithLabelValues("too many alerts").Inc()
		t.Look(t.Now.Add(restFor)) // there may be room then
		return nil
	}
	a := &tracked{rule: r, Alert: alert.Alert{
		Rule: r.Name, Severity: r.Severity, Scope: string(r.Scope), State: alert.Pending, Namespace: t.name.namespace, Pod: t.name.name,
		UID: t.sub.uid, Container: container, Since: t.Now, Labels: t.labels(r, container), Annotations: t.annotations(r),
	}}
	a.Fingerprint = fingerprint(a.Labels)
	t.alerts[a.identity()] = a
	t.sub.alerts = append(t.sub.alerts, a)
	t.touch(a)
	return a
}

// labels returns the common labels of alerts and the labels of the rule.
func (t *turn) labels(r *ruleset.Rule, container string) map[string]string {
	labels := map[string]string{"alertname": r.Name, "severity": r.Severity}
	for name, value := range map[string]string{"node": t.options.Node, "namespace": t.name.namespace, "pod": t.name.name, "uid": string(t.sub.uid), "container": container} {
		if value != "" {
			labels[name] = value
		}
	}
	for i := range r.Program.Labels {
		if value := t.filled(r, &r.Program.Labels[i], maxLabel); value != "" {
			labels[r.Program.Labels[i].Key] = value
		}
	}
	return labels
}

func (t *turn) annotations(r *ruleset.Rule) map[string]string {
	annotations := make(map[string]string, len(r.Program.Annotations))
	for i := range r.Program.Annotations {
		annotations[r.Program.Annotations[i].Key] = t.filled(r, &r.Program.Annotations[i], maxAnnotation)
	}
	return annotations
}

// filled is the text of a template. filled must not have the subject looked at again when its values change.
func (t *turn) filled(r *ruleset.Rule, template *expr.Template, limit int) string {
	next := t.Next
	value, err := template.Fill(t.ctx, &t.Moment, limit)
	t.Next = next
	if err != nil {
		t.fault(r, err, t.Now)
	}
	return value
}

// step moves an alert and returns when it must be looked at again.
func (c *core) step(a *tracked, isTrue bool, now time.Time, m *expr.Moment) time.Time {
	over := a.over
	state, look := a.step(isTrue, now)
	if !over.Equal(a.over) {
		c.save(a)
	}
	if state != a.State {
		c.enter(a, state, now, m)
	}
	return look
}

// enter brings an alert into a state. The moment is nil if there are no facts of the subject any more.
func (c *core) enter(a *tracked, state alert.State, now time.Time, m *expr.Moment) {
	a.State = state
	switch state {
	case alert.Firing:
		a.Firing = &now
		if m != nil && a.rule.Program != nil {
			t := &turn{core: c, Moment: *m, ctx: context.Background(), sub: c.subject(a.UID)}
			a.Annotations = t.annotations(a.rule)
		}
		c.touch(a)
		c.tell(a, now)
	case alert.Resolved:
		a.Resolved = &now
		c.remove(a)
		c.remember(a.Alert, now)
		if a.told {
			a.done = nil
			c.ended[a.slot()] = a
			c.boundEnded()
			c.pass(a, now)
		}
	default:
		c.remove(a)
	}
}

// touch notes that an alert has changed.
func (c *core) touch(a *tracked) {
	c.save(a)
	c.version++
	c.changed[a.UID] = true
}

// remove takes an alert out that is no longer pending or firing.
func (c *core) remove(a *tracked) {
	id := a.identity()
	delete(c.alerts, id)
	if sub, ok := c.subjects[a.UID]; ok {
		sub.alerts = slices.DeleteFunc(sub.alerts, func(other *tracked) bool { return other == a })
	}
	c.version++
	c.changed[a.UID] = true
	c.unsaved[slot{identity: id}] = nil
}

// remember shows a resolved alert for a while.
func (c *core) remember(a alert.Alert, now time.Time) {
	c.recent = slices.DeleteFunc(c.recent, func(old alert.Alert) bool { return now.Sub(*old.Resolved) > recentFor })
	if len(c.recent) == maxRecent {
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	c.recent = append(c.recent, a)
}

// tell notifies the outputs of a firing alert, unless it is silenced.
func (c *core) tell(a *tracked, now time.Time) {
	if a.Silenced = c.silencedBy(a.Labels, now); a.Silenced != "" {
		return
	}
	if !a.told {
		a.told = true
		c.pass(a, now)
	}
	if a.acted || a.rule == nil {
		return
	}
	a.acted = true
	for i := range a.rule.Actions {
		c.deliveries = append(c.deliveries, delivery{id: a.identity(), alert: a.clone(), rule: a.rule, at: now, action: &a.rule.Actions[i]})
	}
}

// pass hands an alert to the outputs.
func (c *core) pass(a *tracked, now time.Time) {
	c.save(a)
	if len(c.options.Outputs) == 0 {
		c.delivered(a)
		return
	}
	a.passed = maps.Clone(a.Annotations)
	c.deliveries = append(c.deliveries, delivery{id: a.identity(), alert: a.clone(), rule: a.rule, at: now, done: slices.Clone(a.done)})
}

// clone is a copy of the alert that is handed out.
func (a *tracked) clone() alert.Alert {
	out := a.Alert
	out.Labels, out.Annotations, out.Actions = maps.Clone(a.Labels), maps.Clone(a.Annotations), slices.Clone(a.Actions)
	return out
}

// acknowledge takes that an output has delivered an alert in a state.
func (c *core) acknowledge(id identity, state alert.State, since time.Time, output string) {
	a := c.find(id, state, since)
	if a == nil || a.State != state || !a.Since.Equal(since) || slices.Contains(a.done, output) {
		return
	}
	a.done = append(a.done, output)
	c.save(a)
	c.delivered(a)
}

// delivered forgets an alert that is over once all outputs have it.
func (c *core) delivered(a *tracked) {
	if a.State != alert.Resolved {
		return
	}
	for _, o := range c.options.Outputs {
		if !slices.Contains(a.done, o.Name()) {
			return
		}
	}
	delete(c.ended, a.slot())
	c.unsaved[a.slot()] = nil
}

// find returns an alert that began at an instant, nil if it is not kept any more.
func (c *core) find(id identity, state alert.State, since time.Time) *tracked {
	if state == alert.Resolved {
		return c.ended[slotOf(id, state, since)]
	}
	return c.alerts[id]
}

// boundEnded gives up the oldest of the alerts that are over, if there are too many that no output delivers.
func (c *core) boundEnded() {
	if len(c.ended) <= c.options.maxAlerts() {
		return
	}
	var oldest *tracked
	for _, a := range c.ended {
		if oldest == nil || compareAlerts(a, oldest) < 0 {
			oldest = a
		}
	}
	delete(c.ended, oldest.slot())
	c.unsaved[oldest.slot()] = nil
	c.metrics.dropped.WithLabelValues("not delivered").Inc()
}

// acted stores the result of an action with its alert, and returns the alert.
func (c *core) acted(id identity, since time.Time, result alert.Action) (alert.Alert, bool) {
	result.Message = text.Cut(result.Message, maxFault)
	a := c.alerts[id]
	if a == nil || !a.Since.Equal(since) {
		c.actedLate(id, since, result)
		a = c.find(id, alert.Resolved, since)
	}
	if a == nil {
		return alert.Alert{}, false
	}
	a.Actions = append(slices.Clone(a.Actions), result)
	if len(a.Actions) > maxAlertActions {
		a.Actions = a.Actions[1:]
	}
	c.touch(a)
	return a.clone(), true
}

// actedLate shows the result of an action with the alert that was over before it.
func (c *core) actedLate(id identity, since time.Time, result alert.Action) {
	for i := range slices.Backward(c.recent) {
		a := &c.recent[i]
		if identityOf(a) == id && a.Since.Equal(since) && len(a.Actions) < maxAlertActions {
			a.Actions = append(slices.Clone(a.Actions), result)
			c.version++
			c.changed[a.UID] = true
			return
		}
	}
}

// ruleFails is the rule of the alert that says that a rule cannot be evaluated.
var ruleFails = &ruleset.Rule{Name: ruleset.FailingRule, Group: "statusd", Scope: expr.ScopeNode, Severity: "warning", KeepFiringFor: 10 * time.Minute}

// reportFault makes an alert of a rule that cannot be evaluated.
func (c *core) reportFault(r *ruleset.Rule, f *ruleFault, now time.Time) {
	a := c.alerts[identity{rule: ruleFails.Name, container: r.Name}]
	if a == nil {
		labels := map[string]string{"alertname": ruleFails.Name, "severity": ruleFails.Severity, "rule": r.Name}
		if c.options.Node != "" {
			labels["node"] = c.options.Node
		}
		a = &tracked{rule: ruleFails, Alert: alert.Alert{Rule: ruleFails.Name, Severity: ruleFails.Severity, Scope: string(expr.ScopeNode), State: alert.Pending, Since: now, Labels: labels, Fingerprint: fingerprint(labels)}}
		c.alerts[a.identity()] = a
		c.subject("").alerts = append(c.subject("").alerts, a)
	}
	a.over = now
	a.Annotations = faultAnnotations("Rule " + r.Name + " cannot be evaluated: " + f.message)
	c.version++
	if a.State == alert.Pending {
		c.enter(a, alert.Firing, now, nil)
	}
	c.sooner(c.subject(""), now.Add(ruleFails.KeepFiringFor))
}

func faultAnnotations(summary string) map[string]string {
	return map[string]string{
		"summary": summary,
		"action":  "Correct the expression: statusd rules check says what it may use, statusd rules test what it gives. Until then the alerts of the rule stay as they are.",
	}
}
