package observer

import (
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/guard/host"
	"github.com/statusd/statusd/guard/monitor"
	"github.com/statusd/statusd/history"
)

// machineSettings are the section machine of the file.
func machineSettings(c *host.Config) (list []setting) {
	for _, s := range c.Settings() {
		list = append(list, setting{"machine." + s.Name, "", s.Value, s.Doc})
	}
	return list
}

// newMachine makes what watches the logs and the load of the machine.
func (o *Observer) newMachine() (*host.Host, error) {
	return host.New(o.config.Machine, host.Options{
		Node: o.node, Client: o.client, HostRoot: o.config.HostRoot, StateDir: o.config.StateDir,
		Found: o.foundInLogs, Changed: func() { o.listeners.Announce("") }, Registerer: o.registerer, Logger: o.log,
	})
}

// loadSource is the load for the query API, nil if it is not read.
func (o *Observer) loadSource() api.LoadSource {
	if !o.machine.HasLoad() {
		return nil
	}
	return o.machine
}

// foundInLogs keeps what a log says in the history of the pod that it hit, else in that of the node.
func (o *Observer) foundInLogs(p monitor.Problem) {
	about, record := history.Ref{}, p.Record()
	facts := o.view.Load().facts
	var pod *v1.Pod
	if p.Victim != nil {
		if sighting, ok := facts.APIPods[p.Victim.UID]; ok {
			pod = sighting.Pod
		} else if sighting, ok := facts.KubeletPods[p.Victim.UID]; ok {
			pod = sighting.Pod
		}
		record.Container = facts.Containers[p.Victim.ContainerID].Name
	}
	if pod != nil {
		about = history.Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}
	}
	o.history.Add(about, record)
	o.listeners.Announce(about.UID)
	if !o.config.Machine.Events {
		return
	}
	if pod != nil {
		o.events.sender.Event(pod, record.Container, p.EventType(), p.Reason, record.Message)
	} else {
		o.events.sender.NodeEvent(p.EventType(), p.Reason, record.Message)
	}
}
