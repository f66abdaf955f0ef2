package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/robustness/agent"
	"github.com/statusd/statusd/test/robustness/gateway"
	"github.com/statusd/statusd/test/robustness/record"
)

const (
	termination = syscall.SIGTERM
	// stopWithin is how long the agent may take to end after SIGTERM.
	stopWithin = 30 * time.Second
)

// fault is something that goes wrong for a while.
type fault struct {
	name string
	// happen returns when the fault is over.
	happen func(s *storm, ctx context.Context, d time.Duration) error
}

// faults of a kind. A round has one of the server, one or two of the agent and some others.
var (
	serverFaults = []fault{
		{"server killed", (*storm).killServer}, {"server killed, data kept as backup", (*storm).backUp}, {"server killed", (*storm).killServer},
		{"server frozen", (*storm).freezeServer}, {record.Restored, (*storm).restoreServer},
	}
	agentFaults = []fault{
		{"agent killed", (*storm).killAgent}, {"agent killed", (*storm).killAgent}, {"agent terminated", (*storm).terminateAgent}, {"agent stopped", (*storm).freezeAgent},
	}
	otherFaults = concat(
		[]fault{
			toxic("latency", "latency", "downstream", map[string]any{"latency": 400, "jitter": 300}),
			toxic("narrow", "bandwidth", "downstream", map[string]any{"rate": 20}),
			toxic("half-open upstream", "timeout", "upstream", map[string]any{"timeout": 0}),
			toxic("half-open downstream", "timeout", "downstream", map[string]any{"timeout": 0}),
			toxic("reset", "reset_peer", "downstream", map[string]any{"timeout": 300}),
			toxic("cut within an answer", "limit_data", "downstream", map[string]any{"bytes": 20_000}),
			toxic("cut within a request", "limit_data", "upstream", map[string]any{"bytes": 8_000}),
			toxic("sliced", "slicer", "downstream", map[string]any{"average_size": 100, "size_variation": 80, "delay": 500}),
			{"link down", (*storm).linkDown},
			{"pods marked not ready", repeated((*storm).notReady)}, {"lies", repeated((*storm).lie)},
			hook(hookKeeps), hook(hookFails), hook(hookSlow), hook(hookDies),
			watchIs(gateway.Silent), watchIs(gateway.Late), watchIs(gateway.Duplicated), watchIs(gateway.Expired),
			diskIs(agent.Slow), diskIs(agent.Hung), diskIs(agent.Full), diskIs(agent.ReadOnly),
		},
		answers(),
	)
)

func concat(lists ...[]fault) (all []fault) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// answers are faults in which requests are answered wrongly: of all pods, and of some.
func answers() (list []fault) {
	rules := []gateway.Rule{
		{Code: 401}, {Code: 403}, {Code: 409}, {Code: 413}, {Code: 422}, {Code: 429, Retry: time.Second}, {Code: 500}, {Code: 503, Retry: time.Second}, {Code: 504},
		{Code: 200, Body: `{"kind":"Status","apiVersion":"v1","status":"Success"}`}, {Code: 200, Body: "<html>welcome</html>"},
	}
	for _, rule := range rules {
		rule.Before = true
		name := fmt.Sprintf("answered %d", rule.Code)
		if rule.Body != "" {
			name += " " + rule.Body[:6]
		}
		all, some := rule, rule
		all.Name, all.Every = name, 2
		some.Name, some.Share, some.Shares = name+" for some pods", 1, 5
		list = append(list, answer(all), answer(some))
	}
	for _, rule := range []gateway.Rule{{Code: 504}, {Code: 500}, {Code: 200}} {
		rule.Name, rule.Every = fmt.Sprintf("done and answered %d", rule.Code), 2
		list = append(list, answer(rule))
	}
	return list
}

func answer(rule gateway.Rule) fault {
	if rule.Code == http.StatusOK && rule.Body == "" {
		rule.Name = "answer cut short"
	}
	return fault{rule.Name, func(s *storm, ctx context.Context, d time.Duration) error {
		defer s.gateway.Set(rule)()
		err := pause(ctx, d)
		if rule.Shares > 0 {
			err = errors.Join(err, s.note(func() error { s.refused = time.Now(); return nil }))
		}
		return err
	}}
}

func watchIs(w gateway.Watch) fault {
	return fault{string(w), func(s *storm, ctx context.Context, d time.Duration) error {
		defer s.gateway.SetWatch(w)()
		return pause(ctx, d)
	}}
}

func toxic(name, kind, stream string, attributes map[string]any) fault {
	return fault{name, func(s *storm, ctx context.Context, d time.Duration) error {
		undo, err := s.network.toxic(kind, stream, attributes)
		if err != nil {
			return err
		}
		return errors.Join(pause(ctx, d), undo())
	}}
}

func diskIs(b agent.Behavior) fault {
	return fault{"disk " + string(b), func(s *storm, ctx context.Context, d time.Duration) error {
		s.current().send(agent.Command{Verb: agent.Disk, Disk: b})
		err := pause(ctx, d)
		s.current().send(agent.Command{Verb: agent.Disk, Disk: agent.Healthy})
		return err
	}}
}

// repeated does something again and again, until the fault is over.
func repeated(do func(*storm, context.Context)) func(*storm, context.Context, time.Duration) error {
	return func(s *storm, ctx context.Context, d time.Duration) error {
		bounded, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		for bounded.Err() == nil {
			do(s, bounded)
			select {
			case <-time.After(3 * time.Second):
			case <-bounded.Done():
			}
		}
		return ctx.Err()
	}
}

func hook(behavior string) fault {
	return fault{"webhook " + behavior, func(s *storm, ctx context.Context, d time.Duration) error {
		undo, err := s.hookOn(ctx, behavior)
		if err != nil {
			return nil // the server is down, or another webhook is there
		}
		err = pause(ctx, d)
		return errors.Join(err, campaign.Await(context.WithoutCancel(ctx), 100*time.Millisecond, func() error { return undo(context.WithoutCancel(ctx)) }),
			s.note(func() error { s.hooked = time.Now(); return nil }))
	}}
}

// note does something with the lock.
func (s *storm) note(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

func (s *storm) linkDown(ctx context.Context, d time.Duration) error {
	if err := s.network.open(false); err != nil {
		return err
	}
	return errors.Join(pause(ctx, d), s.network.open(true))
}

func (s *storm) killServer(ctx context.Context, d time.Duration) error {
	return s.serverDown(ctx, d, func() error { return nil })
}

// backUp keeps the data of the server for later.
func (s *storm) backUp(ctx context.Context, d time.Duration) error {
	return s.serverDown(ctx, d, func() error {
		s.backup = filepath.Join(s.options.state, "backup")
		return replace(filepath.Join(s.server.DataDir(), "etcd"), s.backup)
	})
}

// restoreServer takes the server back to the backup, if there is one.
func (s *storm) restoreServer(ctx context.Context, d time.Duration) error {
	return s.serverDown(ctx, d, func() error {
		if s.backup == "" {
			return nil
		}
		s.history.Add(record.Record{Kind: record.Fault, Fault: record.Restored, Verb: record.End})
		s.restored = time.Now()
		return replace(s.backup, filepath.Join(s.server.DataDir(), "etcd"))
	})
}

// serverDown kills the server, does something with its data, and starts it again.
func (s *storm) serverDown(ctx context.Context, d time.Duration, with func() error) error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	began := time.Now()
	if err := s.server.Kill(); err != nil {
		return err
	}
	err := s.note(with)
	_ = pause(ctx, d/4)
	restart, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	err = errors.Join(err, s.server.Restart(restart))
	return errors.Join(err, s.note(func() error {
		if s.restored.After(began) {
			s.restored = time.Now()
		}
		return nil
	}))
}

func (s *storm) freezeServer(ctx context.Context, d time.Duration) error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	s.server.Freeze()
	defer s.server.Thaw()
	return pause(ctx, d)
}

// replace copies a directory over another.
func replace(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

func (s *storm) killAgent(ctx context.Context, d time.Duration) error {
	return s.agentDown(ctx, d, true)
}

func (s *storm) terminateAgent(ctx context.Context, d time.Duration) error {
	return s.agentDown(ctx, d, false)
}

func (s *storm) agentDown(ctx context.Context, d time.Duration, kill bool) error {
	s.killing.Lock()
	defer s.killing.Unlock()
	s.endAgent(kill)
	_ = pause(ctx, rand.N(d/8)) // when it starts again need not be the same for a seed
	return s.startAgent()
}

func (s *storm) freezeAgent(ctx context.Context, d time.Duration) error {
	s.killing.Lock()
	defer s.killing.Unlock()
	p := s.current()
	p.Signal(syscall.SIGSTOP)
	defer p.Signal(syscall.SIGCONT)
	return pause(ctx, d/2)
}
