package actions

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/alert/ruleset"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestDecisions(t *testing.T) {
	policy := Policy{
		ruleset.ActionEvict:            {Budget: new(2), Per: time.Hour, CoolDown: 10 * time.Minute},
		ruleset.ActionRestartContainer: {Budget: new(3), Per: time.Hour, CoolDown: 10 * time.Minute},
	}
	entry := func(rule string, kind ruleset.ActionKind, subject string, ago time.Duration) Entry {
		return Entry{Rule: rule, Kind: kind, Subject: subject, At: start.Add(-ago), Done: true}
	}
	busy := entry("a", ruleset.ActionRestartContainer, "pod/1", time.Hour)
	busy.Busy, busy.Done = true, false
	dry := entry("a", ruleset.ActionEvict, "pod/1", time.Minute)
	dry.DryRun, dry.Done = true, false
	evict, restart := ruleset.Action{Kind: ruleset.ActionEvict}, ruleset.Action{Kind: ruleset.ActionRestartContainer}
	for _, test := range []struct {
		name    string
		action  ruleset.Action
		entries []Entry
		want    string // a part of the refusal, empty: it is done
	}{
		{"nothing before", evict, nil, ""},
		{"off", ruleset.Action{Kind: ruleset.ActionCordon}, nil, "off"},
		{"in progress", evict, []Entry{busy}, "in progress"},
		{"in progress on another pod", evict, []Entry{{Subject: "pod/2", Busy: true, Kind: ruleset.ActionRestartContainer, At: start}}, ""},
		{"evicted", restart, []Entry{entry("a", ruleset.ActionEvict, "pod/1", 20*time.Hour)}, "is evicted"},
		{"cool-down after another kind", evict, []Entry{entry("a", ruleset.ActionRestartContainer, "pod/1", 9*time.Minute)}, "cool-down"},
		{"after the cool-down", evict, []Entry{entry("a", ruleset.ActionRestartContainer, "pod/1", 10*time.Minute)}, ""},
		{"a longer cool-down of the rule", ruleset.Action{Kind: ruleset.ActionEvict, CoolDown: time.Hour}, []Entry{entry("a", ruleset.ActionRestartContainer, "pod/1", 59*time.Minute)}, "cool-down"},
		{"the budget of the kind", evict, []Entry{entry("a", ruleset.ActionEvict, "pod/2", time.Minute), entry("b", ruleset.ActionEvict, "pod/3", 59*time.Minute)}, "budget of 2"},
		{"the budget is free again", evict, []Entry{entry("a", ruleset.ActionEvict, "pod/2", time.Minute), entry("b", ruleset.ActionEvict, "pod/3", time.Hour)}, ""},
		{"the budget of the rule", ruleset.Action{Kind: ruleset.ActionEvict, Budget: 1}, []Entry{entry("r", ruleset.ActionEvict, "pod/2", time.Minute)}, "budget of the rule"},
		{"another rule has its own", ruleset.Action{Kind: ruleset.ActionEvict, Budget: 1}, []Entry{entry("a", ruleset.ActionEvict, "pod/2", time.Minute)}, ""},
		{"what was only recorded does not count", evict, []Entry{dry}, ""},
		{"what was only recorded counts for what is only recorded", ruleset.Action{Kind: ruleset.ActionEvict, DryRun: true}, []Entry{dry}, "cool-down"},
		{"a clock that was set back", evict, []Entry{entry("a", ruleset.ActionRestartContainer, "pod/1", -time.Hour)}, "cool-down"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Decide(Request{Rule: "r", Action: test.action, Subject: "pod/1"}, &Ledger{Entries: test.entries}, policy, start)
			if (got.Refused == "") != (test.want == "") || !strings.Contains(got.Refused, test.want) {
				t.Errorf("refused: %q, want %q", got.Refused, test.want)
			}
			if got.DryRun != test.action.DryRun {
				t.Errorf("dry run %v", got.DryRun)
			}
		})
	}
}

// Whatever rules ask for: no two actions on a pod at a time, nothing after an eviction, no subject within its
// cool-down, and no budget exceeded in any window.
func TestActionsNeverFight(t *testing.T) {
	kinds := Kinds()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 2))
		policy := Policy{}
		for _, kind := range kinds {
			if random.IntN(4) > 0 {
				policy[kind] = Limits{Budget: new(1 + random.IntN(3)), Per: time.Duration(1+random.IntN(60)) * time.Minute, CoolDown: time.Duration(random.IntN(20)) * time.Minute}
			}
		}
		ledger, now := &Ledger{}, start
		running, evicted, last := map[string]Entry{}, map[string]bool{}, map[string]time.Time{}
		begun := map[ruleset.ActionKind][]time.Time{}
		for range 200 {
			now = now.Add(time.Duration(random.IntN(300)) * time.Second)
			for _, subject := range slices.Sorted(maps.Keys(running)) { // some end
				if e := running[subject]; random.IntN(2) == 0 {
					success := random.IntN(4) > 0
					ledger.end(subject, e.Kind, success)
					evicted[subject] = evicted[subject] || success && e.Kind == ruleset.ActionEvict
					delete(running, subject)
				}
			}
			r := Request{Rule: fmt.Sprint("r", random.IntN(3)), Subject: fmt.Sprint("pod/", random.IntN(4)),
				Action: ruleset.Action{Kind: kinds[random.IntN(len(kinds))], CoolDown: time.Duration(random.IntN(2)) * 5 * time.Minute}}
			if Decide(r, ledger, policy, now).Refused != "" {
				continue
			}
			limits, allowed := policy.complete()[r.Action.Kind]
			if _, there := running[r.Subject]; there || evicted[r.Subject] || !allowed {
				t.Fatalf("seed %d: %s on %s: running %v, evicted %v, allowed %v", seed, r.Action.Kind, r.Subject, there, evicted[r.Subject], allowed)
			}
			if before, there := last[r.Subject]; there && now.Sub(before) < max(limits.CoolDown, r.Action.CoolDown) {
				t.Fatalf("seed %d: %s within the cool-down", seed, r.Subject)
			}
			e := Entry{Rule: r.Rule, Kind: r.Action.Kind, Subject: r.Subject, At: now, Busy: true}
			ledger.begin(e, limits.Per)
			running[r.Subject], last[r.Subject] = e, now
			begun[r.Action.Kind] = append(begun[r.Action.Kind], now)
			n := 0
			for _, at := range begun[r.Action.Kind] {
				if now.Sub(at) < limits.Per {
					n++
				}
			}
			if n > *limits.Budget {
				t.Fatalf("seed %d: %d of %s in %v, the budget is %d", seed, n, r.Action.Kind, limits.Per, limits.Budget)
			}
		}
	}
}

func TestTheLedgerSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "actions")
	before := &Ledger{Holds: []Hold{{Mark: cordon, Alerts: []string{"f"}, Ours: true}}}
	before.begin(Entry{Rule: "r", Kind: ruleset.ActionEvict, Subject: "pod/1", At: start, Busy: true}, 0)
	if err := before.save(path); err != nil {
		t.Fatal(err)
	}
	after, err := loadLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	before.Entries[0].Busy = false // nothing is in progress any more
	if !reflect.DeepEqual(before, after) {
		t.Errorf("got %+v, want %+v", after, before)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := loadLedger(path); err == nil || len(l.Entries) != 0 {
		t.Errorf("a damaged file: %+v, %v", l, err)
	}
}

func TestTheLedgerIsBounded(t *testing.T) {
	l := &Ledger{}
	for i := range 3 * maxEntries {
		l.begin(Entry{Subject: fmt.Sprint(i), At: start.Add(time.Duration(i) * time.Second)}, 0)
	}
	if len(l.Entries) != maxEntries {
		t.Errorf("%d entries, want %d", len(l.Entries), maxEntries)
	}
	l.begin(Entry{At: start.Add(100 * time.Hour)}, 0)
	if len(l.Entries) != 1 {
		t.Errorf("%d entries after four days, want 1", len(l.Entries))
	}
}
