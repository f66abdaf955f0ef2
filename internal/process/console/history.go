package console

import (
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/alertsetup"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/view"
)

// nodeInterval is how often the node is compared with what its history says.
const nodeInterval = 2 * time.Second

// Record adds a record of a pod, or with an empty reference of the node, and announces it.
func (c *Console) Record(about history.Ref, r history.Record) {
	c.History.Add(about, r)
	c.Announce(about.UID)
}

// NodeRecord adds a record of the node.
func (c *Console) NodeRecord(r history.Record) { c.Record(history.Ref{}, r) }

// NodeChanged announces that something about the node has changed.
func (c *Console) NodeChanged() { c.Announce("") }

// followNode keeps the history of the node itself.
func (c *Console) followNode(ctx context.Context) error {
	add := func(r history.Record) {
		r.Kind = history.KindNode
		c.NodeRecord(r)
	}
	add(history.Record{Subject: c.p.Subject, To: "started", Message: strings.TrimSpace("version " + c.o.Version)})
	for backoff.Sleep(ctx, nodeInterval) {
		for _, r := range c.p.Records() {
			add(r)
		}
	}
	add(history.Record{Subject: c.p.Subject, From: "started", To: "stopped"})
	return nil
}

// recordAction records an action on an alert in the history.
func (c *Console) recordAction(a alert.Alert, action alert.Action) {
	c.Record(alertsetup.Recorded(a, action))
}

// foundInLogs records a log problem in the history of the affected pod, or else of the node, and sends an Event.
func (c *Console) foundInLogs(p logs.Problem) {
	about, record := history.Ref{}, p.Record()
	var pod *v1.Pod
	if p.Victim != nil {
		pod, record.Container = c.p.Find(p.Victim)
	}
	if pod != nil {
		about = history.Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}
	}
	c.Record(about, record)
	switch {
	case !c.p.Outputs.Events:
	case pod != nil:
		c.p.Events.Event(pod, record.Container, p.EventType(), p.Reason, record.Message)
	default:
		c.p.Events.NodeEvent(p.EventType(), p.Reason, record.Message)
	}
}

// source is what a process knows, with what the console adds.
type source struct{ *Console }

// UIDs implements [view.Source].
func (s source) UIDs() []types.UID { return s.p.Facts.UIDs() }

// Pod implements [view.Source].
func (s source) Pod(uid types.UID) (view.Pod, bool) {
	pod, ok := s.p.Facts.Pod(uid)
	if ok {
		pod.Facts.Node.Left = s.machine.Left(explain.Moments(pod.Facts))
	}
	return pod, ok
}

// Node implements [view.Source].
func (s source) Node() view.NodeDetail {
	detail, logs := s.p.Facts.Node(), s.machine.Logs()
	detail.Logs = &logs
	return detail
}

// Gone implements [view.Source].
func (s source) Gone() []view.PodHistory { return s.Console.History.Gone() }

// History implements [view.Source].
func (s source) History(namespace, name string) (view.PodHistory, bool) {
	if name == "" {
		return view.PodHistory{Records: s.Console.History.Node()}, true
	}
	return s.Console.History.Pod(namespace, name)
}

// Watch implements [view.Source].
func (s source) Watch(ctx context.Context, changed func(types.UID)) error {
	s.Listen(ctx, changed, s.UIDs)
	return nil
}
