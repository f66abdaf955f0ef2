package observer

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/guard/collect"
	"github.com/statusd/statusd/guard/standard"
	"github.com/statusd/statusd/history"
	"github.com/statusd/statusd/observe"
)

// guardFlags are the settings of the guard that have a flag.
var guardFlags = map[string]string{"enabled": "guard", "restart": "guard-restart"}

// guardSettings are the section guard of the file.
func guardSettings(c *standard.Config) (list []setting) {
	for _, s := range c.Settings() {
		list = append(list, setting{"guard." + s.Name, guardFlags[s.Name], s.Value, s.Doc})
	}
	return list
}

// newGuard makes the guard of the kubelet. It reads the lease by requests of its own: that they are answered
// shows that the kubelet could have renewed it, which a watch that is silent does not.
func (o *Observer) newGuard() (*standard.Guard, error) {
	kubelet := o.kubeletOptions(nil)
	credentials := collect.Credentials{
		CertFile: kubelet.CertFile, KeyFile: kubelet.KeyFile, TokenFile: kubelet.TokenFile, ServerName: kubelet.ServerName,
	}
	if !kubelet.Insecure {
		credentials.CAFile = kubelet.CAFile
	}
	below := func(path string) string { return filepath.Join(o.config.HostRoot, path) }
	return standard.New(o.config.Guard, standard.Options{
		Node: o.node, StateDir: o.config.StateDir, Client: o.client, Server: o.config.Kubelet.URL, Credentials: credentials,
		Process: o.config.Kubelet.Process, Runtime: o.config.runtimeEndpoint(), KubeletRoot: below(o.config.KubeletRoot), Proc: below("proc"),
		DownTimeout: o.config.ShutdownTimeout / 2,
		Behind:      o.behind,
		Audit:       func() any { return o.view.Load().report },
		Record:      func(r history.Record) { o.history.Add(history.Ref{}, r) },
		Changed:     func() { o.listeners.Announce("") }, Registerer: o.registerer, Logger: o.log,
	})
}

// guardSource is the guard for the query API, nil if there is none.
func (o *Observer) guardSource() api.GuardSource {
	if o.guard == nil {
		return nil
	}
	return o.guard
}

// behind is how far statuses are behind, by the last audit.
func (o *Observer) behind(now time.Time) guard.Fact[guard.Behind] {
	return behind(o.view.Load().report, now)
}

// behind counts the drift of the kinds that a kubelet which does its work does not leave. Pure function.
func behind(r observe.Report, now time.Time) guard.Fact[guard.Behind] {
	for _, side := range []observe.Side{observe.SideAPI, observe.SideKubelet} {
		if answer := r.Sides[side]; !answer.Known() {
			return guard.NotKnown[guard.Behind](now, fmt.Sprintf("%s has not answered: %s", sideNames[side], answer.Err))
		}
	}
	var b guard.Behind
	for i := range r.Differences {
		d := &r.Differences[i]
		switch age := now.Sub(d.Since); {
		case !d.Drift:
		case d.Kind == observe.APIBehindKubelet:
			b.APIBehindKubelet++
			b.APIBehindKubeletOldest = max(b.APIBehindKubeletOldest, age)
		case d.Kind == observe.KubeletBehindRuntime:
			b.KubeletBehindRuntime++
			b.KubeletBehindRuntimeOldest = max(b.KubeletBehindRuntimeOldest, age)
		}
	}
	return guard.Read(r.At, b)
}
