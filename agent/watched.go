package agent

import (
	"fmt"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/guard/host"
	"github.com/statusd/statusd/guard/monitor"
	"github.com/statusd/statusd/history"
)

// machineDefault watches the machine, where no kubelet and no container runtime log anything.
func machineDefault() host.Config {
	c := host.Default()
	c.Units = map[string]string{}
	return c
}

// wireMachine makes what watches the logs and the load of the machine.
func (a *Agent) wireMachine() (err error) {
	options := host.Options{
		Node: a.nodeName, StateDir: a.config.StateDir, Found: a.foundInLogs, Changed: func() { a.changes.Announce("") },
		Registerer: a.registerer, Logger: a.log,
	}
	if a.client != nil {
		options.Client = a.client
	}
	if a.watched, err = host.New(a.config.Machine, options); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// loadSource is the load for the query API, nil if it is not read.
func (a *Agent) loadSource() api.LoadSource {
	if !a.watched.HasLoad() {
		return nil
	}
	return a.watched
}

// foundInLogs keeps what a log says in the history of the pod that it hit, else in that of the node.
func (a *Agent) foundInLogs(p monitor.Problem) {
	about, record := history.Ref{}, p.Record()
	if p.Victim != nil {
		if pod, ok := a.table.ByUID(p.Victim.UID); ok {
			about = history.Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}
			if a.config.Machine.Events {
				a.events.Event(pod, "", p.EventType(), p.Reason, record.Message)
			}
		}
	}
	if about.UID == "" && a.config.Machine.Events {
		a.events.NodeEvent(p.EventType(), p.Reason, record.Message)
	}
	a.history.Add(about, record)
	a.changes.Announce(about.UID)
}
