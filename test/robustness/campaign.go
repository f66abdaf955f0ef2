package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/robustness/agent"
	"github.com/statusd/statusd/test/robustness/gateway"
	"github.com/statusd/statusd/test/robustness/record"
)

const (
	nodeName  = "robust"
	namespace = "robust"
)

// storm is a campaign that runs.
type storm struct {
	options options
	history *record.Writer
	truth   *truth
	server  *controlplane.Process
	admin   kubernetes.Interface
	gateway *gateway.Gateway
	network *network
	front   *httptest.Server // serves the gateway
	link    *authority       // of the certificates between agent and gateway
	log     *os.File         // of the agent

	restarting sync.Mutex // one fault of the server at a time
	killing    sync.Mutex // one fault of the agent at a time, and its start
	hooking    sync.Mutex // one webhook at a time
	mu         sync.Mutex // guards what follows
	agent      *process
	agents     int
	expected   bool             // the agent's end is the campaign's will
	restored   time.Time        // when the server last was
	hooked     time.Time        // until when a webhook was there
	refused    []refusal        // of some pods alone
	gates      atomic.Int64     // numbers of foreign writes
	gating     sync.Map         // UIDs whose gate is being written
	paused     atomic.Bool      // traffic
	backup     string           // directory with data of the server; empty: there is none
	hook       *httptest.Server // the webhook
	hookSays   atomic.Value     // behavior of the webhook
}

// setUp starts all parts but the traffic, and returns what ends them.
func (s *storm) setUp(ctx context.Context) (tearDown func(), err error) {
	var undo []func()
	undoAll := func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
	defer func() {
		if err != nil {
			undoAll()
		}
	}()
	if s.log, err = os.Create(filepath.Join(s.options.state, "agent.log")); err != nil {
		return nil, err
	}
	undo = append(undo, func() { s.log.Close() })
	if s.server, err = controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(s.options.state, "server"), Log: campaign.Out}); err != nil {
		return nil, err
	}
	undo = append(undo, func() { s.server.Thaw(); _ = s.server.Kill() })
	if s.admin, err = kubernetes.NewForConfig(s.server.AdminConfig()); err != nil {
		return nil, err
	}
	node, err := s.server.NodeConfig(nodeName)
	if err != nil {
		return nil, err
	}
	node.UserAgent = "" // the agent's is passed on
	if s.link, err = newAuthority(filepath.Join(s.options.state, "agent.pem")); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.authorityFile(), s.link.pem(), 0o644); err != nil {
		return nil, err
	}
	if s.gateway, err = gateway.New(node, s.history, s.link.pool()); err != nil {
		return nil, err
	}
	s.front = httptest.NewUnstartedServer(s.gateway)
	s.front.EnableHTTP2, s.front.TLS = true, s.link.config()
	s.front.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are cut on purpose
	s.front.StartTLS()
	undo = append(undo, func() {
		s.server.Thaw()
		_ = s.server.Kill() // or requests that are on would be waited for
		s.front.CloseClientConnections()
		s.front.Close()
	})
	if s.network, err = startNetwork(ctx, s.options.toxiproxy, s.front.Listener.Addr().String()); err != nil {
		return nil, err
	}
	undo = append(undo, s.network.stop)
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	s.startHook()
	undo = append(undo, s.hook.Close)
	watching, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	w := &watcher{admin: s.admin, history: s.history, truth: s.truth, known: map[string]string{}}
	parts.Go(func() { w.run(watching) })
	parts.Go(func() { s.neighbor(watching) })
	undo = append(undo, func() { cancel(); parts.Wait() })
	if err := s.startAgent(); err != nil {
		return nil, err
	}
	undo = append(undo, func() { s.endAgent(true) })
	return undoAll, nil
}

// prepare makes the objects that pods need.
func (s *storm) prepare(ctx context.Context) error {
	if _, err := s.admin.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := s.admin.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return campaign.Await(ctx, 50*time.Millisecond, func() error {
		_, err := s.admin.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// authorityFile has the certificate of the authority of the gateway's.
func (s *storm) authorityFile() string { return filepath.Join(s.options.state, "authority.crt") }

// startAgent starts the next process of the agent, and tells it what may be lost. It needs killing, or to be alone.
func (s *storm) startAgent() error {
	s.mu.Lock()
	s.agents++
	number := s.agents
	s.mu.Unlock()
	p, err := startAgent(s.options.agent, number, []string{
		nodeName, "https://" + s.network.address, s.authorityFile(), s.link.path, filepath.Join(s.options.state, "journal.db"),
	}, s.log, s.history, s.took)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.agent, s.expected = p, false
	s.mu.Unlock()
	p.send(s.truth.lost()...)
	go func() {
		<-p.Exited
		<-p.drained
		s.mu.Lock()
		expected := s.expected
		s.mu.Unlock()
		r := record.Record{Kind: record.Ended, Agent: number}
		if !expected {
			r.Err = fmt.Sprintf("ended by itself: %v", p.Err())
		}
		s.history.Add(r)
	}()
	return nil
}

// took takes in a record of the agent.
func (s *storm) took(r record.Record) {
	if r.Kind == record.Return {
		s.truth.returned(r)
	}
}

// current is the process of the agent.
func (s *storm) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent
}

// endAgent ends the agent, as kill -9 does or by SIGTERM, and returns when it is gone.
func (s *storm) endAgent(kill bool) {
	s.mu.Lock()
	p := s.agent
	s.expected = true
	s.mu.Unlock()
	if kill {
		p.Kill()
	} else {
		p.Signal(termination)
		select {
		case <-p.Exited:
		case <-time.After(s.options.bound(stopWithin)):
			s.history.Add(record.Record{Kind: record.Ended, Agent: p.number, Err: fmt.Sprintf("did not end within %s of SIGTERM", s.options.bound(stopWithin))})
			p.Kill()
		}
	}
	<-p.drained
}

// traffic changes pods until ctx ends.
func (s *storm) traffic(ctx context.Context, random *rand.Rand) {
	tick := time.NewTicker(time.Second / time.Duration(s.options.rate))
	defer tick.Stop()
	slots := make(chan struct{}, 20) // requests of the administrator that are on
	admin := func(do func(context.Context)) {
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				do(ctx)
			}()
		default: // the server does not answer
		}
	}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.paused.Load() {
			continue
		}
		if random.IntN(2*s.options.rate) == 0 { // about each two seconds
			s.current().send(agent.Command{Verb: agent.Look, Wait: time.Second})
		}
		commands, remove, create := s.truth.step(random)
		s.current().send(commands...)
		if remove != nil {
			admin(func(ctx context.Context) { s.remove(ctx, remove) })
		}
		if create >= 0 {
			admin(func(ctx context.Context) { s.create(ctx, create) })
		}
		if random.IntN(4) == 0 {
			admin(s.foreignWrite(random))
		}
	}
}

// create makes a pod for a slot, which the watch brings: a restore may take a pod away whose creation was answered.
func (s *storm) create(ctx context.Context, slot int) {
	no := false
	created, err := s.admin.CoreV1().Pods(namespace).Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: slotName(slot)},
		Spec: v1.PodSpec{
			NodeName: nodeName, RestartPolicy: v1.RestartPolicyNever, AutomountServiceAccountToken: &no,
			Containers: []v1.Container{{Name: "main", Image: "example.com/main:1"}},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		s.history.Add(record.Record{Kind: record.Created, UID: string(created.UID), Name: created.Name})
	}
}

func (s *storm) remove(ctx context.Context, pod *v1.Pod) {
	s.history.Add(record.Record{Kind: record.Remove, UID: string(pod.UID), Name: pod.Name})
	_ = s.admin.CoreV1().Pods(namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
}
