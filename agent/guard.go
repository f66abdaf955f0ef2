package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/guard/collect"
	"github.com/statusd/statusd/guard/notify"
	"github.com/statusd/statusd/history"
)

// GuardConfig is about the verdict of an agent on itself. There is no setting for restarts: it never restarts itself.
type GuardConfig struct {
	Enabled       bool `yaml:"enabled"`
	NodeCondition bool `yaml:"nodeCondition"`
	Events        bool `yaml:"events"`
}

const (
	guardFile = "guard.json"
	// guardInterval is the time between two looks at oneself, listInterval that between two lists of the runtime's pods.
	guardInterval = 5 * time.Second
	listInterval  = 10 * time.Second
	// askPatience is how long a question may take before that is evidence.
	askPatience = 2 * time.Second
	neverItself = "statusd does not restart itself; its supervisor or a guard beside it does"
)

// selfGuard judges the agent and its node by what they know of themselves.
type selfGuard struct {
	*guard.Guard
	agent *Agent
	// locks are those that everything needs; with them the parts are asked what they know. pods lists those of the runtime.
	locks, pods question
	condition   *notify.Condition // nil: none is kept

	mu    sync.Mutex // guards known
	known inside     // what the parts knew when they last answered
}

// processBegan is close to the start of this process. A reload, which makes another agent, is no start.
var processBegan = time.Now()

// wireGuard makes it, unless it is switched off.
func (a *Agent) wireGuard() (err error) {
	config := a.config.Guard
	if !config.Enabled {
		return nil
	}
	g := &selfGuard{agent: a}
	g.locks = question{patience: askPatience, ask: g.askParts}
	g.pods = question{every: listInterval, patience: askPatience, ask: func(ctx context.Context) error {
		_, err := a.runtime.Pods(ctx)
		return err
	}}
	options := guard.Options{
		Kubelet: itself{}, Collect: g.collect, Policy: guard.Policy{Never: neverItself}, Every: guardInterval,
		StateFile: filepath.Join(a.config.StateDir, guardFile),
		Record:    func(r history.Record) { a.history.Add(history.Ref{}, r) },
		Changed:   func() { a.changes.Announce("") }, Registerer: a.registerer, Logger: a.log,
	}
	if config.Events {
		options.Outputs = append(options.Outputs, guardEvents{a})
	}
	if config.NodeCondition && a.client != nil {
		g.condition = notify.NewCondition(a.client, a.nodeName, a.log)
		options.Outputs = append(options.Outputs, g.condition)
	}
	if g.Guard, err = guard.New(options); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a.guard = g
	return nil
}

// guardSource is the guard for the query API, nil if there is none.
func (a *Agent) guardSource() api.GuardSource {
	if a.guard == nil {
		return nil
	}
	return a.guard
}

// Run looks until ctx ends.
func (g *selfGuard) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	if g.condition != nil {
		parts.Go(func() { _ = g.condition.Run(ctx) })
	}
	err := g.Guard.Run(ctx)
	parts.Wait()
	g.locks.wait()
	g.pods.wait()
	return err
}

// collect reads what is known inside. It waits for no lock: once one is stuck, the parts cannot be asked, and what they
// knew last is as old as it is.
func (g *selfGuard) collect(ctx context.Context) guard.Evidence {
	locks, pods := g.locks.look(ctx), g.pods.look(ctx)
	g.mu.Lock()
	facts := g.known
	g.mu.Unlock()
	facts.locks, facts.pods = locks, pods
	return facts.evidence(time.Now(), thisProcess())
}

// askParts returns unless a lock that everything needs is stuck.
func (g *selfGuard) askParts(context.Context) error {
	g.agent.alive()
	known := g.agent.inside(time.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = known
	return nil
}

// inside is what the parts of the agent know now, but for what may hang.
func (a *Agent) inside(now time.Time) inside {
	f := inside{at: now, down: a.shutdown.Err() != nil, certificate: a.clientCertificate(now)}
	if f.disk, f.diskErr = disk(a.config.StateDir); f.diskErr == nil {
		if err := a.journal.Writable(); err != nil {
			f.disk.Err = err.Error()
		}
	}
	if a.manifests != nil && !a.manifests.HasSynced() {
		f.manifests = errors.New("the directory was not read yet")
	}
	if a.client == nil {
		return f
	}
	f.joined, f.registered, f.report = true, a.node.UID() != "", a.node.Err()
	f.renewed, f.lease = a.node.LeaseRenewed(), a.options.lease
	f.watch, f.pending = a.apiProblem(), a.manager.Pending()
	return f
}

// disk is the file system of a directory.
func disk(dir string) (guard.Disk, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return guard.Disk{}, fmt.Errorf("state directory %s: %w", dir, err)
	}
	size := uint64(fs.Bsize)
	return guard.Disk{
		Free: fs.Bfree * size, Total: fs.Blocks * size, InodesFree: fs.Ffree, Inodes: fs.Files, ReadOnly: fs.Flags&unix.ST_RDONLY != 0,
	}, nil
}

// clientCertificate is when the certificate of the kubeconfig expires.
func (a *Agent) clientCertificate(now time.Time) guard.Fact[time.Time] {
	if len(a.certificate.CertData) == 0 && a.certificate.CertFile == "" {
		return guard.NotKnown[time.Time](now, "the API server is not asked with a certificate")
	}
	data, err := a.certificate.CertData, error(nil)
	if len(data) == 0 { // else the file does not count
		data, err = os.ReadFile(a.certificate.CertFile)
	}
	if err != nil {
		return guard.NotKnown[time.Time](now, err.Error())
	}
	expires, err := collect.CertificateExpiry(data)
	if err != nil {
		return guard.NotKnown[time.Time](now, err.Error())
	}
	return guard.Read(now, expires)
}

// itself is the agent as a service that cannot be started or stopped by a guard.
type itself struct{}

func (itself) Name() string { return "statusd" }

func (itself) State(context.Context) (guard.Process, error) { return thisProcess(), nil }

func thisProcess() guard.Process {
	return guard.Process{Exists: true, Sure: true, PID: os.Getpid(), Started: processBegan}
}

func (itself) Start(context.Context) error   { return nil }
func (itself) Stop(context.Context) error    { return errors.New(neverItself) }
func (itself) Restart(context.Context) error { return errors.New(neverItself) }

// guardEvents makes Events of the Node.
type guardEvents struct{ agent *Agent }

// Notify implements [guard.Output].
func (g guardEvents) Notify(n guard.Notice) {
	switch n.Kind {
	case guard.NoticeUnhealthy:
		g.agent.events.NodeEvent(v1.EventTypeWarning, string(n.Kind), n.Message)
	case guard.NoticeHealthy:
		g.agent.events.NodeEvent(v1.EventTypeNormal, string(n.Kind), n.Message)
	}
}
