package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/fit"
	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/podsapi"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/web"
)

// maxWatchers is how many watches the query API serves at a time. It is below daemon.MaxConnections, so that
// watches do not keep probes and scrapes out.
const maxWatchers = 64

// changes passes on that something about a pod has changed, to all that have asked for it. It is the
// observer of the status manager, which also says how far the delivery is.
type changes struct {
	next status.Observer // sees everything first; nil: there is none

	daemon.Listeners
}

// Changed, Accepted, Failed and Removed are those of a [status.Observer].
func (c *changes) Changed(change podstatus.Change) {
	if c.next != nil {
		c.next.Changed(change)
	}
	c.Announce(change.UID)
}

func (c *changes) Accepted(uid types.UID, version uint64, at time.Time) {
	if c.next != nil {
		c.next.Accepted(uid, version, at)
	}
	c.Announce(uid)
}

func (c *changes) Failed(try podstatus.Undelivered) {
	if c.next != nil {
		c.next.Failed(try)
	}
	c.Announce(try.UID)
}

func (c *changes) Removed(uid types.UID, at time.Time) {
	if c.next != nil {
		c.next.Removed(uid, at)
	}
	c.Announce(uid)
}

// wireQuery makes what answers questions about this node and its pods.
func (a *Agent) wireQuery() (err error) {
	a.dispatcher.changed = a.changes.Announce
	if a.podsAPI, err = podsapi.New(podsapi.Options{Source: wholePods{a}}); err != nil {
		return err
	}
	if err := a.wireAlerts(); err != nil {
		return err
	}
	options := api.Options{Source: answers{a}, Guard: a.guardSource(), Load: a.loadSource(), Page: web.Handler(), MaxWatchers: maxWatchers}
	if a.alerts != nil {
		options.Alerts = a.alerts
	}
	a.query, err = api.New(options)
	return err
}

// answers is what the agent knows, as the query API asks for it.
type answers struct{ *Agent }

// UIDs are the pods of this node; a static pod stands for its mirror.
func (a answers) UIDs() []types.UID {
	all := a.table.All()
	uids := make([]types.UID, len(all))
	for i, pod := range all {
		uids[i] = pod.UID
	}
	return uids
}

func (a answers) Pod(uid types.UID) (api.Pod, bool) {
	pod, ok := a.table.ByUID(uid)
	if !ok {
		return api.Pod{}, false
	}
	p := api.Pod{Facts: a.facts(pod)}
	if delivery, ok := a.manager.Delivery(uid); ok {
		p.AcceptedAt = delivery.AcceptedAt
	}
	return p, true
}

func (a answers) Gone() []api.PodHistory { return a.history.Gone() }

func (a answers) History(namespace, name string) (api.PodHistory, bool) {
	if name == "" {
		return api.PodHistory{Records: a.history.Node()}, true
	}
	return a.history.Pod(namespace, name)
}

func (a answers) Watch(ctx context.Context, changed func(types.UID)) error {
	a.changes.Listen(ctx, changed)
	return nil
}

// Node is what is known of this node.
func (a answers) Node() api.NodeDetail {
	detail := api.NodeDetail{Name: a.nodeName, Version: a.options.Version, Runtime: a.runtime.Version(), Problems: a.problems()}
	logs := a.watched.Logs()
	detail.Logs = &logs
	if here, err := a.here(); err == nil {
		detail.Conditions, detail.Addresses = here.Status.Conditions, here.Status.Addresses
		detail.Capacity, detail.Allocatable = here.Status.Capacity, here.Status.Allocatable
	}
	detail.Requested = fit.Total(a.activePods())
	now := time.Now()
	for _, p := range a.manager.Pending() { // those that wait the longest first
		detail.Delivery.Pending++
		if !p.Since.IsZero() {
			detail.Delivery.OldestSeconds = max(detail.Delivery.OldestSeconds, now.Sub(p.Since).Seconds())
		}
		if p.Err != nil && detail.Delivery.LastError == "" {
			detail.Delivery.LastError = p.Err.Error()
		}
	}
	if a.node == nil {
		detail.Conditions = []v1.NodeCondition{a.readiness()}
		return detail
	}
	detail.UID = a.node.UID()
	if current := a.node.Current(); current != nil {
		detail.Conditions = current.Status.Conditions
	}
	if renewed := a.node.LeaseRenewed(); !renewed.IsZero() {
		detail.Delivery.LeaseRenewed = &renewed
	}
	if since := a.unreachableSince(now); !since.IsZero() {
		detail.Delivery.UnreachableSince = &since
	}
	return detail
}

// readiness is the Ready condition of a node that has no Node object.
func (a answers) readiness() v1.NodeCondition {
	ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "Standalone", Message: "there is no API server to report to"}
	if err := a.notReady(); err != nil {
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "NotReady", err.Error()
	}
	return ready
}

// problems are what is wrong with this node, as clauses.
func (a answers) problems() (list []string) {
	for _, c := range a.endpoints().Ready {
		if err := c.Err(); err != nil {
			list = append(list, c.Name+": "+err.Error())
		}
	}
	if err := a.notReady(); err != nil {
		list = append(list, "node: "+err.Error())
	}
	if a.manifests != nil {
		for _, p := range a.manifests.Problems() {
			list = append(list, "manifests: "+p.Error())
		}
	}
	return list
}
