package observer

import (
	"fmt"
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/guardsetup"
	"github.com/statusd/statusd/internal/hostproc"
	"github.com/statusd/statusd/internal/nodeclient"
	"github.com/statusd/statusd/internal/process/console"
)

// newGuard makes the guard of the kubelet. newGuard reads the lease by requests of its own: that they are answered
// shows that the kubelet could have renewed it, which a watch that is silent does not.
func (o *Observer) newGuard(c *console.Console) (_ console.Guard, err error) {
	kubelet := o.kubeletOptions(nil)
	credentials := nodeclient.Credentials{
		CertFile: kubelet.CertFile, KeyFile: kubelet.KeyFile, TokenFile: kubelet.TokenFile, CAFile: kubelet.CAFile, Insecure: kubelet.Insecure, ServerName: kubelet.ServerName,
	}
	config := o.config.Guard
	config.LogFile = o.config.kubeletLog()
	o.guard, err = guardsetup.New(config, guardsetup.Options{
		Node: o.node, StateDir: o.config.StateDir, Client: o.client, Server: o.config.Kubelet.URL, Credentials: credentials,
		Process: hostproc.Finder{Root: o.config.HostRoot, PIDFile: o.config.Kubelet.pidFile(), Name: o.config.Kubelet.Process},
		Runtime: o.config.runtimeEndpoint(), KubeletRoot: o.config.KubeletRoot,
		Behind: o.behind, Lists: o.lists, Maintenance: o.maintenance,
		Audit:   func() any { return o.view.Load().report },
		Outputs: c.GuardOutputs(),
		Record:  c.NodeRecord, Changed: c.NodeChanged, Registerer: o.registerer, Logger: o.log,
	})
	if err != nil {
		return nil, err
	}
	o.life.OnClose(o.guard)
	return o.guard, nil
}

// behind is how far statuses are behind, by the last audit.
func (o *Observer) behind(now time.Time) guard.Fact[guard.Behind] {
	return behind(o.view.Load().report, now)
}

// lists reports whether the runtime answers the audit's lists. A runtime may hang in lists while it reports
// itself ready.
func (o *Observer) lists(now time.Time) guard.Fact[guard.Answer] {
	return lists(o.view.Load().report.Sides[audit.SideRuntime], now)
}

func lists(runtime audit.Answer, now time.Time) guard.Fact[guard.Answer] {
	switch {
	case runtime.Known():
		return guard.Read(runtime.At, guard.Answer{Answered: true, OK: true, Text: "ok"})
	case runtime.At.IsZero():
		return guard.NotKnown[guard.Answer](now, "the runtime has not answered yet: "+runtime.Err)
	}
	return guard.Read(now, guard.Answer{Text: runtime.Err})
}

// maintenance is what the annotation of the Node says.
func (o *Observer) maintenance(now time.Time) guard.Fact[guard.Maintenance] {
	node := o.view.Load().facts.NodeObject
	if node == nil {
		return guard.NotKnown[guard.Maintenance](now, "the Node is not known")
	}
	return guard.Read(now, guard.AnnotatedMaintenance(node.Annotations))
}

// behind counts the drift of the kinds that a kubelet which does its work does not leave. Pure function.
func behind(r audit.Report, now time.Time) guard.Fact[guard.Behind] {
	for _, side := range []audit.Side{audit.SideAPI, audit.SideKubelet} {
		if answer := r.Sides[side]; !answer.Known() {
			return guard.NotKnown[guard.Behind](now, fmt.Sprintf("%s has not answered: %s", sideNames[side], answer.Err))
		}
	}
	var b guard.Behind
	for i := range r.Differences {
		d := &r.Differences[i]
		switch age := now.Sub(d.Since); {
		case !d.Drift:
		case d.Kind == audit.APIBehindKubelet:
			b.APIBehindKubelet++
			b.APIBehindKubeletOldest = max(b.APIBehindKubeletOldest, age)
		case d.Kind == audit.KubeletBehindRuntime && d.Subject == "": // of a container; an address may be changed on its way
			b.KubeletBehindRuntime++
			b.KubeletBehindRuntimeOldest = max(b.KubeletBehindRuntimeOldest, age)
		}
	}
	return guard.Read(r.At, b)
}
