package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/clockstep"
	"github.com/statusd/statusd/test/controlplane"
)

const (
	// within is how long after a fault the statuses may be wrong.
	within = 10 * time.Second
	// patience is how long a late status is waited for, so that the report can say how late.
	patience = 20 * time.Second
	// watch is for how long the statuses are looked at after a fault, and stable in how many looks in a row they
	// must be true in the end.
	watch  = 2 * time.Second
	stable = 3
	// lookAgain is how long after a look the next one is.
	lookAgain = 100 * time.Millisecond
)

// faultOptions are the settings of a run of faults.
type faultOptions struct {
	faults, pods int
	seed         uint64
}

// faultRun is a node on which faults happen.
type faultRun struct {
	*crowd
	quiet   *demo // restarts statusd without output
	seed    uint64
	random  *rand.Rand // of the fault that is on
	machine *machine
	server  *controlplane.Process
	pods    *population
	clock   time.Duration // by which statusd's clock is wrong
	report  *faultReport
	failed  *daemon // the last one whose end was reported
}

// runFaults breaks the machine under a running node again and again, and compares what the API says
// with the processes that there are.
func (d *demo) runFaults(ctx context.Context, options faultOptions) (err error) {
	dir, err := os.MkdirTemp("", "statusd-faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d.state = dir
	machine, err := newMachine(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, machine.close()) }()
	server, _, err := d.startControlPlane(ctx, withControllers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopControlPlane(ctx, server)) }()
	r, err := d.newFaultRun(server, machine, options)
	if err != nil {
		return err
	}
	if err := r.restart(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopStatusd(ctx, r.daemon)) }()
	if problem := r.report.end(); problem != "" {
		return errors.New(problem)
	}
	begin := time.Now()
	if err := r.all(ctx, options.faults); err != nil {
		return err
	}
	if err := r.leaveNothing(ctx); err != nil {
		r.report.wrong = append(r.report.wrong, fmt.Sprintf("at the end: %v", err))
	}
	r.say("\n%s, in %s", r.report, time.Since(begin).Round(time.Second))
	if n := len(r.report.wrong); n > 0 {
		return fmt.Errorf("%d things were wrong; the same faults again: make faults FAULTS=%d PODS=%d SEED=%d", n, options.faults, options.pods, options.seed)
	}
	return nil
}

func (d *demo) newFaultRun(server *controlplane.Process, machine *machine, options faultOptions) (*faultRun, error) {
	rest := server.AdminConfig()
	rest.QPS = -1 // looks are many
	admin, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, err
	}
	config, err := d.config("statusd")
	if err != nil {
		return nil, err
	}
	config.HealthzBindAddress = "127.0.0.1:10265" // this network has no other listeners, and no client gets this port
	config.StateDir = machine.state
	config.Manifests = filepath.Join(d.state, "manifests")
	config.CgroupParent = machine.cgroup
	config.Node.MaxPods = 4 * options.pods
	config.Node.Taints = []string{} // the scheduler places the pods of controllers
	// A full disk must not end the pods whose statuses are compared.
	config.Eviction.Hard = eviction.Disabled()
	if config.Kubeconfig, err = server.NodeKubeconfig(nodeName); err != nil {
		return nil, err
	}
	if err := trustAnyClock(config.Kubeconfig); err != nil {
		return nil, err
	}
	pods, err := newPopulation(d.state, config.Manifests, admin, options)
	if err != nil {
		return nil, err
	}
	return &faultRun{
		crowd: &crowd{demo: d, size: options.pods, admin: admin, daemon: &daemon{config: config}},
		quiet: &demo{out: io.Discard, state: d.state, statusd: d.statusd},
		seed:  options.seed, machine: machine, server: server, pods: pods, report: newFaultReport(options),
	}, nil
}

// all creates the pods and applies the faults.
func (r *faultRun) all(ctx context.Context, faults int) error {
	begin := time.Now()
	if err := r.pods.create(ctx); err != nil {
		return err
	}
	if late, differences := r.untilTrue(ctx); late > patience {
		return fmt.Errorf("statuses are not true %s after the start, before any fault: %q; the end of statusd's log:\n%s", since(begin), differences, r.daemon.logTail())
	}
	r.say("%d pods are there, and their statuses are true, %s after the first was created", r.size, since(begin))
	for n := range faults {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.pods.change(ctx, r.machine); err != nil {
			return fmt.Errorf("fault %d: %w", n, err)
		}
		var kind faultKind
		kind, r.random = nthFault(r.seed, n)
		r.report.begin(n, kind.name)
		if err := kind.happen(r, ctx); err != nil {
			return fmt.Errorf("fault %d, %s: %w", n, kind.name, err)
		}
		if line := r.report.end(); line != "" {
			r.say("%s", line)
		}
		if n%20 == 19 {
			r.say("%d faults", n+1)
		}
	}
	return nil
}

// nthFault is the same for the same seed, independent of the pods' history, and so are its random numbers.
func nthFault(seed uint64, n int) (faultKind, *rand.Rand) {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	return faultKinds[random.IntN(len(faultKinds))], random
}

// verify waits until the statuses are true, and notes how long that took.
func (r *faultRun) verify(ctx context.Context, when string) error {
	if err := r.revive(ctx); err != nil {
		return err
	}
	late, differences := r.untilTrue(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	r.report.trueAfter(late, when, differences)
	return nil
}

// untilTrue returns after what time the statuses were true and stayed so, and the last differences before.
func (r *faultRun) untilTrue(ctx context.Context) (time.Duration, []string) {
	begin := time.Now()
	agreed, since := 0, time.Duration(0)
	var last []string
	for ctx.Err() == nil {
		at := time.Since(begin)
		differences, err := r.look(ctx)
		if err != nil {
			differences = []string{err.Error()}
		}
		if len(differences) > 0 {
			agreed, last = 0, differences
		} else if agreed++; agreed == 1 {
			since = at
		}
		if agreed >= stable && at > watch {
			return since, last
		}
		if agreed == 0 && at > patience {
			return at, last
		}
		_ = campaign.Pause(ctx, lookAgain)
	}
	return 0, nil
}

// kill ends statusd as a kernel that is out of memory does.
func (r *faultRun) kill() {
	r.daemon.Kill()
}

// restart starts statusd with its current clock, and waits until it answers.
func (r *faultRun) restart(ctx context.Context) error {
	daemon, err := r.quiet.startStatusd(r.daemon.config)
	if err != nil {
		return err
	}
	r.daemon = daemon
	if r.clock != 0 {
		if err := clockstep.Set(daemon.PID(), r.clock); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		if alive(ctx, daemon.config.HealthzBindAddress) {
			r.report.started(nil)
			return nil
		}
		select {
		case <-daemon.Exited:
			r.reportEnd()
			return nil
		case <-ctx.Done():
			r.report.started(fmt.Errorf("statusd does not answer on /livez after %s", within))
			return nil
		case <-time.After(lookAgain):
		}
	}
}

// revive starts a statusd that has ended by itself, which it should not have.
func (r *faultRun) revive(ctx context.Context) error {
	select {
	case <-r.daemon.Exited:
		r.reportEnd()
		return r.restart(ctx)
	default:
		return nil
	}
}

func (r *faultRun) reportEnd() {
	if r.failed != r.daemon {
		r.failed = r.daemon
		r.report.started(r.daemon.failure())
	}
}

func alive(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/livez", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// reboot ends everything that runs on the node, as a loss of power does, and changes the boot ID.
func (r *faultRun) reboot(ctx context.Context) error {
	r.kill()
	for {
		processes, err := r.machine.processes()
		if err != nil {
			return err
		}
		if len(processes) == 0 {
			break
		}
		for _, p := range processes {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		if err := campaign.Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	if err := r.machine.newBoot(); err != nil {
		return err
	}
	return r.restart(ctx)
}
