package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/view"
)

const (
	// nodeEvery is how often the node is looked at, since not all its facts are announced: a lease that is not renewed is no event.
	nodeEvery = 10 * time.Second
	// nodePause is how long changes of the node are collected after a look.
	nodePause = 100 * time.Millisecond
	// maxNodeLog is how many transitions of the node's conditions are kept.
	maxNodeLog = 256
)

// nodeMemory is the engine's memory of the node.
type nodeMemory struct {
	log        []view.Record // transitions of conditions
	conditions map[string]string
	looked     time.Time
	step       time.Duration
	stepped    time.Time
}

// pause reports whether the node was evaluated a moment ago because of another change. Then its evaluation is
// postponed: the cost grows with the number of pods, and changes come in bursts.
func (c *core) pause(now time.Time) bool {
	if since := now.Sub(c.memory.looked); since >= 0 && since < nodePause {
		c.sooner(c.subject(""), c.memory.looked.Add(nodePause))
		return true
	}
	c.memory.looked = now
	return false
}

func (c *core) evaluateNode(ctx context.Context, now time.Time) {
	sub := c.subject("")
	detail := view.DescribeNode(c.source)
	news := c.memory.compare(detail.Conditions, now)
	if len(news) > 0 {
		c.lines = append(c.lines, line{Log: news})
	}
	t := &turn{core: c, ctx: ctx, sub: sub, Moment: expr.Moment{Now: now, Records: merged(detail.History, c.memory.log)}}
	t.SetNode(expr.Node{NodeDetail: detail, Counts: c.counts, ClockStep: c.memory.step, ClockStepped: c.memory.stepped, Numbers: c.kubeletNumbers()})
	for _, r := range slices.Concat(c.inForce[expr.ScopeNode].facts, c.inForce[expr.ScopeKubelet].facts) {
		t.apply(r, "")
	}
	t.events(detail.History)
	for i := range news {
		t.event(&news[i])
	}
	if list := c.inForce; len(list[expr.ScopeNode].facts)+len(list[expr.ScopeKubelet].facts) > 0 {
		t.Look(now.Add(nodeEvery))
	}
	t.finish()
}

// kubeletNumbers are the numbers about the kubelet, as far as they are known.
func (c *core) kubeletNumbers() expr.KubeletFacts {
	if c.options.Kubelet != nil {
		return c.options.Kubelet()
	}
	if g, ok := c.source.Guard.(interface{ Evidence() guard.Evidence }); ok {
		return expr.KubeletNumbers(g.Evidence())
	}
	return expr.KubeletFacts{}
}

// compare adds the transitions of conditions to the log, and returns them.
func (n *nodeMemory) compare(conditions []v1.NodeCondition, now time.Time) (news []view.Record) {
	first := n.conditions == nil
	if first {
		n.conditions = map[string]string{}
	}
	for _, c := range conditions {
		kind, status := string(c.Type), string(c.Status)
		before := n.conditions[kind]
		n.conditions[kind] = status
		if before == status || first || before == "" || strings.HasSuffix(kind, "Pressure") { // the node's history has its pressure
			continue
		}
		news = append(news, view.Record{Observed: now, Kind: history.KindNode, Subject: kind, From: before, To: status, Reason: c.Reason, Message: c.Message})
	}
	n.log = append(n.log, news...)
	if extra := len(n.log) - maxNodeLog; extra > 0 {
		n.log = slices.Delete(n.log, 0, extra)
	}
	return news
}

// merged are the records of the node and the transitions of its conditions, by time.
func merged(a, b []view.Record) []view.Record {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(x, y view.Record) int { return x.Observed.Compare(y.Observed) })
	return all
}
