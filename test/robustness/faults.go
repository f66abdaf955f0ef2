package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/clockstep"
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

// faults of a kind. A round has some of each kind (perRound); those that come more than once here happen more often.
var (
	serverFaults = []fault{
		{serverKilled, (*storm).killServer}, {serverKept, (*storm).backUp}, {serverKilled, (*storm).killServer}, {record.Restored, (*storm).restoreServer},
		{serverKilled, (*storm).killServer}, {serverKilled, (*storm).killServer}, {"server frozen", (*storm).freezeServer}, {"server slow", (*storm).slowServer},
	}
	agentFaults = []fault{
		{agentKilled, (*storm).killAgent}, {agentKilled, (*storm).killAgent}, {agentKilled, (*storm).killAgent}, {"agent terminated", (*storm).terminateAgent},
		{"agent stopped", (*storm).freezeAgent}, {agentExhausted, (*storm).exhaustMemory},
	}
	answerFaults = answers()
	otherFaults  = concat(
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
			{"pods marked not ready", repeated((*storm).notReady, 3*time.Second)}, {"lies", longer(2, repeated((*storm).lie, time.Second))},
			hook(hookKeeps), hook(hookFails), hook(hookSlow), hook(hookDies), hook(hookDenies),
			watchIs(gateway.Silent), watchIs(gateway.Late), watchIs(gateway.Duplicated), watchIs(gateway.Expired),
			diskIs(agent.Slow), diskIs(agent.Hung), diskIs(agent.Full), diskIs(agent.ReadOnly),
			{"no descriptors", (*storm).exhaustDescriptors},
			{"server certificate expired", (*storm).expireServer}, {gateway.Unauthenticated, (*storm).expireClient},
		},
		clockSteps(),
	)
)

// Faults that the summary counts.
const (
	serverKilled   = "server killed"
	serverKept     = "server killed, data kept as backup"
	agentKilled    = "agent killed"
	agentExhausted = "agent out of memory"
)

func concat(lists ...[]fault) (all []fault) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// forSome ends the name of a fault in which requests of some pods alone are answered wrongly.
const forSome = " for some pods"

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
			name += map[bool]string{true: " with a Status", false: " with HTML"}[rule.Body[0] == '{']
		}
		all, some := rule, rule
		all.Name, all.Every = name, 2
		some.Name, some.Share, some.Shares = name+forSome, 1, 5
		list = append(list, answer(all), answer(some))
	}
	for _, rule := range []gateway.Rule{{Code: 504}, {Code: 500}, {Code: 200}} {
		rule.Name = fmt.Sprintf("done and answered %d", rule.Code)
		if rule.Code == http.StatusOK {
			rule.Name = "answer cut short"
		}
		all, some := rule, rule
		all.Every, some.Name, some.Share, some.Shares = 2, rule.Name+forSome, 1, 5
		list = append(list, answer(all), answer(some))
	}
	return list
}

func answer(rule gateway.Rule) fault {
	return fault{rule.Name, func(s *storm, ctx context.Context, d time.Duration) error {
		defer s.gateway.Set(rule)()
		err := pause(ctx, d)
		if rule.Shares > 0 {
			err = errors.Join(err, s.note(func() error { s.refused = append(s.refused, refusal{rule, time.Now()}); return nil }))
		}
		return err
	}}
}

// refusal is that some pods alone were answered wrongly.
type refusal struct {
	gateway.Rule
	until time.Time
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
			return s.restartNetwork()
		}
		err = pause(ctx, d)
		if undo() != nil {
			err = errors.Join(err, s.restartNetwork())
		}
		return err
	}}
}

// restartNetwork ends the faults of a network that does not end them itself.
func (s *storm) restartNetwork() error {
	err := s.network.restart()
	r := record.Record{Kind: record.Fault, Fault: record.NetworkRestarted, Verb: record.End}
	if err != nil {
		r.Err = err.Error()
	}
	s.history.Add(r)
	return err
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
func repeated(do func(*storm, context.Context), every time.Duration) func(*storm, context.Context, time.Duration) error {
	return func(s *storm, ctx context.Context, d time.Duration) error {
		bounded, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		for bounded.Err() == nil {
			do(s, bounded)
			select {
			case <-time.After(every):
			case <-bounded.Done():
			}
		}
		return ctx.Err()
	}
}

// longer has a fault last that many times as long, beyond its round if need be: a fight takes its time.
func longer(times int, happen func(*storm, context.Context, time.Duration) error) func(*storm, context.Context, time.Duration) error {
	return func(s *storm, ctx context.Context, d time.Duration) error {
		return happen(s, ctx, time.Duration(times)*d)
	}
}

func hook(behavior string) fault {
	return fault{"webhook " + behavior, func(s *storm, ctx context.Context, d time.Duration) error {
		if !s.hooking.TryLock() { // one at a time
			return nil
		}
		defer s.hooking.Unlock()
		if s.hookOn(ctx, behavior) != nil {
			return nil // the server is down
		}
		err := pause(ctx, d)
		return errors.Join(err, s.hooksOff(ctx))
	}}
}

// hooksOff removes the webhooks, those too that a restore has brought back.
func (s *storm) hooksOff(ctx context.Context) error {
	found := false
	err := campaign.Await(context.WithoutCancel(ctx), 100*time.Millisecond, func() error {
		deleted, err := s.deleteHooks(context.WithoutCancel(ctx))
		found = found || deleted
		return err
	})
	if found {
		_ = s.note(func() error { s.hooked = time.Now(); return nil })
	}
	return err
}

// note does something with the lock.
func (s *storm) note(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

func (s *storm) linkDown(ctx context.Context, d time.Duration) error {
	if s.network.open(false) != nil {
		return s.restartNetwork()
	}
	err := pause(ctx, d)
	if s.network.open(true) != nil {
		err = errors.Join(err, s.restartNetwork())
	}
	return err
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
	restart, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.bound(3*time.Minute))
	defer cancel()
	err = errors.Join(err, s.server.Restart(restart))
	return errors.Join(err, s.note(func() error {
		if s.restored.After(began) {
			s.restored = time.Now()
		}
		return nil
	}))
}

// slowServer has the server run a part of the time only: each request takes a second or more, as with a slow etcd.
func (s *storm) slowServer(ctx context.Context, d time.Duration) error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	bounded, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	defer s.server.Thaw()
	for bounded.Err() == nil {
		s.server.Freeze()
		_ = pause(bounded, 500*time.Millisecond)
		s.server.Thaw()
		_ = pause(bounded, 50*time.Millisecond)
	}
	return ctx.Err()
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

// exhaustMemory has the agent take memory until there is none, which ends it.
func (s *storm) exhaustMemory(ctx context.Context, d time.Duration) error {
	s.killing.Lock()
	defer s.killing.Unlock()
	p := s.current()
	s.mu.Lock()
	s.expected = true
	s.mu.Unlock()
	size, err := addressSpace(p.PID())
	if err == nil {
		err = unix.Prlimit(p.PID(), unix.RLIMIT_AS, &unix.Rlimit{Cur: size, Max: size}, nil)
	}
	if err == nil {
		p.send(agent.Command{Verb: agent.Hoard})
		select {
		case <-p.Exited:
		case <-time.After(s.options.bound(stopWithin)):
			err = errors.New("the agent has not run out of memory")
		}
	}
	s.endAgent(true)
	_ = pause(ctx, rand.N(d/8))
	return errors.Join(err, s.startAgent())
}

// addressSpace is how much a process has mapped, in bytes.
func addressSpace(pid int) (size uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err == nil {
		_, err = fmt.Sscan(string(text), &size)
	}
	return size * uint64(os.Getpagesize()), err
}

// fewDescriptors is less than the agent has open: no file and no connection can be opened.
const fewDescriptors = 3

// exhaustDescriptors takes the agent's connections away, and lets it open nothing.
func (s *storm) exhaustDescriptors(ctx context.Context, d time.Duration) error {
	pid := s.current().PID()
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return gone(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: fewDescriptors, Max: before.Max}, nil); err != nil {
		return gone(err)
	}
	s.front.CloseClientConnections()
	err := pause(ctx, d)
	return errors.Join(err, gone(unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil)))
}

// gone is nil if the error is that the process has ended meanwhile: another fault has ended it.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// expireServer has the gateway show a certificate that has expired, and then another one.
func (s *storm) expireServer(ctx context.Context, d time.Duration) error {
	if err := s.link.renewServer(-time.Hour); err != nil {
		return err
	}
	s.front.CloseClientConnections()
	return errors.Join(pause(ctx, d), s.link.renewServer(longValid))
}

// expireClient gives the agent a certificate that expires at once, and then another one.
func (s *storm) expireClient(ctx context.Context, d time.Duration) error {
	if err := s.link.renewClient(time.Second); err != nil {
		return err
	}
	return errors.Join(pause(ctx, d), s.link.renewClient(longValid))
}

// clockSteps are faults in which the agent's clock is wrong for a while; none where a process cannot have a clock of its own.
func clockSteps() (list []fault) {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	for name, offset := range map[string]time.Duration{"clock an hour ahead": time.Hour, "clock a day behind": -24 * time.Hour} {
		list = append(list, fault{name, func(s *storm, ctx context.Context, d time.Duration) error {
			p, err := s.stepClock(nil, offset)
			err = errors.Join(err, pause(ctx, d))
			_, back := s.stepClock(p, 0)
			return errors.Join(err, back)
		}})
	}
	slices.SortFunc(list, func(a, b fault) int { return cmp.Compare(a.name, b.name) })
	return list
}

// stepClock steps the clock of the process, or of the one that runs, and returns which. A process that has ended meanwhile has no clock.
func (s *storm) stepClock(p *process, offset time.Duration) (*process, error) {
	s.killing.Lock() // a step stops the process for a moment, and so does another fault
	defer s.killing.Unlock()
	if p == nil {
		p = s.current()
	}
	if p.HasExited() {
		return p, nil
	}
	err := clockstep.Set(p.PID(), offset)
	if p.HasExited() {
		return p, nil
	}
	return p, err
}
