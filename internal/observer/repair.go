package observer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/repair"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/wake"
)

// repairsFile in the state directory has the repairs that were tried, so that a restart does not renew the budget.
const repairsFile = "repairs"

const (
	// lookTimeout is how long the sides may take to answer before a repair.
	lookTimeout = 30 * time.Second
	// lookPoll is how often they are looked at meanwhile.
	lookPoll = 100 * time.Millisecond
	// repairTimeout bounds one repair.
	repairTimeout = 2 * time.Minute
)

// repairs tries what may be repaired, one thing at a time.
type repairs struct {
	observer *Observer
	policy   repair.Policy
	repairer *repair.Repairer
	past     []repair.Past // of the goroutine that repairs
	news     chan struct{} // capacity 1: one is enough
}

func (c *RepairConfig) policy() repair.Policy {
	p := repair.Policy{KubeletDead: repair.DefaultKubeletDead, Budget: c.Budget, Per: time.Hour, DryRun: c.DryRun}
	for _, kind := range c.Kinds {
		p.Kinds = append(p.Kinds, audit.Kind(kind))
	}
	return p
}

func (o *Observer) newRepairs() (*repairs, error) {
	runtime := o.options.runtime
	if runtime == nil {
		runtime = criCalls{endpoint: o.config.CRIEndpoint}
	}
	r := &repairs{observer: o, policy: o.config.Repair.policy(), news: make(chan struct{}, 1)}
	var err error
	r.repairer, err = repair.New(repair.Options{Sides: r, API: repair.ForClient(o.client, o.node), Runtime: runtime})
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(r.file())
	if err == nil {
		err = json.Unmarshal(data, &r.past)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// Without the past the budget would be as good as new with each start.
		return nil, fmt.Errorf("repairs that were tried: %w; remove the file to go on without them", err)
	}
	return r, nil
}

func (r *repairs) file() string { return filepath.Join(r.observer.config.StateDir, repairsFile) }

// run repairs until ctx ends, after each audit that leaves something to do.
func (r *repairs) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.news:
		}
		steps := repair.Plan(r.observer.view.Load().report, r.policy, r.past, time.Now())
		if len(steps) == 0 {
			continue
		}
		if err := r.try(ctx, steps[0]); err != nil {
			r.observer.log.Error("repairs are off: the record of attempts cannot be saved", "err", err)
			<-ctx.Done()
			return nil
		}
		wake.Up(r.news) // for the next one
	}
}

// try makes one repair. The attempt is recorded first, so that a crash does not repeat it without end; the error
// means that it cannot be recorded.
func (r *repairs) try(ctx context.Context, s repair.Step) error {
	r.past = recent(append(r.past, repair.Past{At: time.Now(), Kind: s.Kind, Pod: s.Pod}), time.Now())
	if err := r.save(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	result := r.repairer.Do(bounded, s)
	if ctx.Err() != nil {
		return nil
	}
	r.report(result)
	if _, counts := result.Past(); counts {
		return nil
	}
	r.past = r.past[:len(r.past)-1]
	backoff.Sleep(ctx, idle) // it is not so any more, which the next audit shows
	return r.save()
}

// recent are the attempts that a plan still looks at.
func recent(past []repair.Past, now time.Time) []repair.Past {
	var kept []repair.Past
	for _, p := range past {
		if now.Sub(p.At) < 2*time.Hour {
			kept = append(kept, p)
		}
	}
	return kept
}

func (r *repairs) save() error {
	data, err := json.Marshal(r.past)
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(), data, 0o600)
}

// report brings an attempt into the log, the metrics, the history and, if they are on, the Events.
func (r *repairs) report(result repair.Result) {
	o := r.observer
	o.log.Info("repair", "kind", result.Kind, "pod", result.Pod.Namespace+"/"+result.Pod.Name, "uid", result.Pod.UID, "container", result.Container,
		"outcome", string(result.Outcome), "did", result.Did, "reason", result.Reason, "why", result.Why)
	o.metrics.repaired.WithLabelValues(string(result.Kind), string(result.Outcome)).Inc()
	if result.Outcome == repair.Skipped {
		return
	}
	o.console.Record(refOf(result.Pod), history.Record{
		Observed: result.At, Kind: history.KindDrift, Subject: string(result.Kind), Container: result.Container, To: string(result.Outcome),
		Message: result.Did + result.Reason,
	})
	if o.config.Outputs.Events && result.Event.Reason != "" {
		o.events.about(o.view.Load(), result.Pod, result.Container, result.Event.Type, result.Event.Reason, result.Event.Message)
	}
}

// Look implements [repair.Sides]: it queries all sides, and returns their facts when each answering side has
// answered again.
func (r *repairs) Look(ctx context.Context) (audit.Facts, error) {
	sides, begin := &r.observer.sides, time.Now()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for {
		sides.API.Confirm()
		sides.Kubelet.Refresh()
		sides.Runtime.Refresh()
		sides.Machine.Refresh()
		facts := sides.facts(r.observer.node, time.Now())
		old := func(answer audit.Answer, at time.Time) bool { return answer.Known() && !at.After(begin) }
		if !old(facts.APIAnswer, facts.APIConfirmed) && !old(facts.KubeletAnswer, facts.KubeletAnswer.At) &&
			!old(facts.RuntimeAnswer, facts.RuntimeAnswer.At) && !old(facts.MachineAnswer, facts.MachineAnswer.At) {
			return facts, nil
		}
		if !backoff.Sleep(ctx, lookPoll) {
			return audit.Facts{}, fmt.Errorf("not all sides have answered again within %v", lookTimeout)
		}
	}
}
