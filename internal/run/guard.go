package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/diskspace"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/collect"
	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/process/console"
)

const (
	guardFile = "guard.json"
	// guardInterval is the time between two looks at oneself, listInterval that between two lists of the runtime's pods.
	guardInterval = 5 * time.Second
	listInterval  = 10 * time.Second
	// askPatience is how long a question may take before that is evidence.
	askPatience = 2 * time.Second
	neverItself = "statusd does not restart itself; its supervisor or a guard beside it does"
)

// selfGuard judges the process and its node by what they know of themselves.
type selfGuard struct {
	*guard.Guard
	node     *inside.Node
	stateDir string
	// locks takes the locks that all parts need and reads the parts' facts. pods lists the runtime's pods.
	locks, pods question

	mu    sync.Mutex // guards known
	known evidence   // what the parts knew when they last answered
}

// processBegan is close to the start of this process. A reload, which makes another agent, is no start.
var processBegan = time.Now()

// newGuard makes it.
func (p *Process) newGuard(c *console.Console) (console.Guard, error) {
	node := p.node
	g := &selfGuard{node: node, stateDir: p.config.StateDir}
	g.locks = question{patience: askPatience, ask: g.askParts}
	g.pods = question{every: listInterval, patience: askPatience, ask: func(ctx context.Context) error {
		_, err := node.Runtime.Pods(ctx)
		return err
	}}
	options := guard.Options{
		Kubelet: itself{}, Collect: g.collect, Policy: guard.Policy{Never: neverItself}, Every: guardInterval,
		StateFile: filepath.Join(p.config.StateDir, guardFile), Record: c.NodeRecord, Changed: c.NodeChanged,
		Registerer: p.registerer, Logger: p.log,
	}
	options.Outputs = c.GuardOutputs()
	var err error
	if g.Guard, err = guard.New(options); err != nil {
		return nil, err
	}
	return g, nil
}

// Run looks until ctx ends.
func (g *selfGuard) Run(ctx context.Context) error {
	err := g.Guard.Run(ctx)
	g.locks.wait()
	g.pods.wait()
	return err
}

// collect returns the node's facts about itself. collect waits for no lock: if a lock is stuck, the parts cannot be read,
// and their last facts keep their age.
func (g *selfGuard) collect(ctx context.Context) guard.Evidence {
	locks, pods := g.locks.look(ctx), g.pods.look(ctx)
	g.mu.Lock()
	facts := g.known
	g.mu.Unlock()
	facts.locks, facts.pods = locks, pods
	return facts.judged(time.Now(), thisProcess())
}

// askParts returns unless a lock that everything needs is stuck.
func (g *selfGuard) askParts(context.Context) error {
	g.node.Alive()
	known := knownInside(g.node, g.stateDir, time.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = known
	return nil
}

// knownInside is what the parts of the node know now, but for what may hang.
func knownInside(n *inside.Node, stateDir string, now time.Time) evidence {
	f := evidence{at: now, down: n.ShuttingDown(), certificate: clientCertificate(n.Certificate(), now)}
	if f.disk, f.diskErr = disk(stateDir); f.diskErr == nil {
		if err := n.Journal.Writable(); err != nil {
			f.disk.Err = err.Error()
		}
	}
	if n.Manifests != nil && !n.Manifests.HasSynced() {
		f.manifests = errors.New("the directory was not read yet")
	}
	if n.Client == nil {
		return f
	}
	f.joined, f.registered, f.report = true, n.Object.UID() != "", n.Object.Err()
	f.renewed, f.lease = n.Object.LeaseRenewed(), n.Lease
	f.watch, f.pending = n.WatchErr(), n.Manager.Pending()
	return f
}

// disk is the file system of a directory.
func disk(dir string) (guard.Disk, error) {
	space, err := diskspace.Of(dir)
	if err != nil {
		return guard.Disk{}, fmt.Errorf("state directory: %w", err)
	}
	return guard.Disk{Free: space.Free, Total: space.Total, InodesFree: space.InodesFree, Inodes: space.Inodes, ReadOnly: space.ReadOnly}, nil
}

// clientCertificate is when the certificate of the kubeconfig expires.
func clientCertificate(c rest.TLSClientConfig, now time.Time) guard.Fact[time.Time] {
	if len(c.CertData) == 0 && c.CertFile == "" {
		return guard.NotKnown[time.Time](now, "the API server is not asked with a certificate")
	}
	data, err := c.CertData, error(nil)
	if len(data) == 0 { // else the file does not count
		data, err = os.ReadFile(c.CertFile)
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
