package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/history"
)

// restart restarts the target unless the bound of the cluster, its operator or a change meanwhile is against it: then the error is [ErrWithheld].
func (g *Guard) restart(ctx context.Context, target Target, reason, by string, wanted func() bool) error {
	service := g.o.Kubelet
	if target == TargetRuntime {
		service = g.o.Runtime
	}
	r := Restart{At: time.Now(), What: target, By: by, Reason: reason}
	if service == nil {
		r.Err = "there is no service of the " + string(target) + " to restart"
		g.count(r, true)
		return fmt.Errorf("guard: %s", r.Err)
	}
	if why := g.against(ctx, target, service); why != "" {
		return g.hold(why)
	}
	if err := g.admitted(ctx, reason); err != nil {
		return g.hold(err.Error())
	}
	if !wanted() {
		return ErrWithheld
	}
	r.At = time.Now()
	r.Evidence, r.EvidenceErr = g.keep(ctx, r)
	if why := g.against(ctx, target, service); why != "" { // an operator may have stopped it while the evidence was collected
		g.releaseSlot(ctx)
		return g.hold(why)
	}
	return g.restartNow(ctx, service, r)
}

// stateTimeout is how long the state of a service may take.
const stateTimeout = 5 * time.Second

// against is why a service must not be restarted, as its supervisor knows at this moment.
func (g *Guard) against(ctx context.Context, target Target, service Service) string {
	limited, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	p, err := service.State(limited)
	now := time.Now()
	process := Read(now, p)
	if err != nil {
		process = NotKnown[Process](now, err.Error())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	why := leftAlone(process)
	if why != "" && target == TargetRuntime {
		why = service.Name() + ": " + why
	}
	return cmp.Or(forbidden(target, g.o.Policy, g.historyLocked(), now), why)
}

// hold withholds a restart for a while.
func (g *Guard) hold(why string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held, g.heldUntil = why, time.Now().Add(fleetPause+rand.N(fleetPause))
	g.report.Withheld, g.report.NextRestart = g.held, g.heldUntil // until the next look the report would not give a reason for the wait
	return fmt.Errorf("%w: %s", ErrWithheld, why)
}

// restartNow restarts a service. The restart is recorded before it is made, so that the budget holds even if this program ends in between.
func (g *Guard) restartNow(ctx context.Context, service Service, r Restart) error {
	g.forgetEvidence(ctx)
	g.count(r, true)
	g.log.Warn("restart begins", "service", service.Name(), "reason", r.Reason, "evidence", r.Evidence)

	limited, cancel := context.WithTimeout(ctx, g.o.RestartTimeout)
	defer cancel()
	err := service.Restart(limited)
	if err != nil {
		r.Err = err.Error()
	}
	g.count(r, false)
	g.restarted(r, service.Name(), err)
	return err
}

// keep keeps the evidence. A failure to keep it, or a hanging disk, does not prevent a restart.
func (g *Guard) keep(ctx context.Context, r Restart) (dir, problem string) {
	if g.o.Keep == nil {
		return "", ""
	}
	g.mu.Lock()
	c := Case{At: r.At, Target: r.What, Reason: r.Reason, Report: g.report, Evidence: g.evidence}
	g.mu.Unlock()
	patient, cancel := context.WithTimeout(ctx, keepPatience)
	defer cancel()
	kept := make(chan string, 1)
	err := g.keeping.Do(patient, func() error {
		limited, cancel := context.WithTimeout(patient, keepTimeout)
		defer cancel()
		dir, err := g.o.Keep(limited, c)
		kept <- dir
		return err
	})
	select {
	case dir = <-kept:
	default: // it hangs
	}
	if err != nil {
		g.log.Warn("evidence incomplete, restarting anyway", "err", err)
		problem = err.Error()
	}
	return dir, problem
}

// count adds a restart to the report, or what became of the last one.
func (g *Guard) count(r Restart, begins bool) {
	g.mu.Lock()
	restarts := slices.Clone(g.report.Restarts) // reports that were handed out share the old one
	if !begins && len(restarts) > 0 {
		restarts = restarts[:len(restarts)-1]
	}
	restarts = append(restarts, r)
	g.report.Restarts = restarts[max(0, len(restarts)-keptRestarts):]
	if r.What == TargetKubelet {
		if begins {
			g.state = g.state.tried(r.Reason, r.At)
		}
		g.state = g.state.Restarted(time.Now())
	}
	g.mu.Unlock()
	g.store()
	g.o.Changed()
}

// forgetEvidence ceases to name evidence that was removed since. There is one restart at a time, so that the list is the same
// before and after the disk was asked.
func (g *Guard) forgetEvidence(ctx context.Context) {
	g.mu.Lock()
	restarts := slices.Clone(g.report.Restarts)
	g.mu.Unlock()
	patient, cancel := context.WithTimeout(ctx, keepPatience)
	defer cancel()
	err := g.keeping.Do(patient, func() error {
		for i, r := range restarts {
			if r.Evidence == "" {
				continue
			}
			if _, err := os.Stat(r.Evidence); errors.Is(err, fs.ErrNotExist) {
				restarts[i].Evidence, restarts[i].EvidenceErr = "", "removed: later evidence took its room"
			}
		}
		return nil
	})
	if err != nil { // the list is still in use by a disk that hangs
		return
	}
	g.mu.Lock()
	g.report.Restarts = restarts
	g.mu.Unlock()
}

// restarted reports what became of a restart.
func (g *Guard) restarted(r Restart, name string, err error) {
	result, record := "success", history.Record{Observed: time.Now(), Kind: history.KindNode, Subject: string(r.What), To: "restarted", Reason: r.Reason}
	message := fmt.Sprintf("%s was restarted by the %s: %s", name, r.By, r.Reason)
	if err != nil {
		result, record.To = "error", "not restarted"
		message = fmt.Sprintf("the restart of %s by the %s failed: %v", name, r.By, err)
	}
	if r.Evidence != "" {
		message += "; evidence in " + r.Evidence
	}
	if r.EvidenceErr != "" {
		message += "; evidence incomplete: " + r.EvidenceErr
	}
	record.Message = message
	g.metrics.restarts.WithLabelValues(r.Reason, result).Inc()
	g.o.Record(record)
	g.notify(NoticeRestarted, message)
	g.log.Info("restart ended", "service", name, "result", result, "err", err)
}
