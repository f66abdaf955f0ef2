package status

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestInvariantsHoldWhateverHappens runs random programs of reporters, API users, second
// writers, webhooks, faults, lies, restored backups, a lagging watch and restarts. It checks
// the invariants of ARCHITECTURE.md at every write and after every step, and in the end, when
// all is well again, that the API's pods say what the node says, and within what time.
func TestInvariantsHoldWhateverHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		kind := rapid.Custom(drawKind).Draw(r, "kind")
		program := rapid.SliceOfN(rapid.Custom(drawStep), 30, 60).Draw(r, "program")
		program = slices.DeleteFunc(program, func(s step) bool { return s.Action == nothing })
		var broken string
		synctest.Test(t, func(*testing.T) { broken = runProgram(kind, program) })
		if broken != "" {
			r.Fatalf("%s\nkind: %+v\nprogram: %v", broken, kind, program)
		}
	})
}

var allKinds = flag.Bool("kinds", false, "the random machine also runs with the manager's own table, a journal of ends and other options")

// kind is what a program is run with.
type kind struct {
	// Safety: the node knows which containers run; else the manager goes by the reports.
	Safety bool
	// Crashes: the process dies after each step.
	Crashes bool
	// Own: the manager keeps the table of pods itself, from the watch.
	Own bool
	// Ends: the journal keeps final statuses only.
	Ends bool
	// Completes, Wide and Reads are Options.CompleteReports, PreferThroughput and AlwaysRead.
	Completes, Wide, Reads bool
}

func drawKind(t *rapid.T) kind {
	rarely := func(what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 3 }
	k := kind{Safety: rapid.Bool().Draw(t, "safety"), Crashes: rarely("crashes")}
	if *allKinds {
		k.Own, k.Ends = rapid.Bool().Draw(t, "own table"), rarely("only ends")
		k.Completes, k.Wide, k.Reads = rarely("completes"), rarely("wide"), rarely("reads")
	}
	return k
}

// step is an action with the numbers that it chooses by.
type step struct {
	Action  string
	Choices [3]int
}

func drawStep(t *rapid.T) step {
	s := step{Action: rapid.SampledFrom(slices.Sorted(maps.Keys(actions))).Draw(t, "action")}
	for i := range s.Choices {
		s.Choices[i] = rapid.IntRange(0, 59_999).Draw(t, "choice")
	}
	return s
}

// nothing comes first, so that a program that fails shrinks to it where nothing is needed.
const nothing = " "

// actions are what can happen; one that finds nothing to happen to does nothing. Those that
// are there twice happen more often.
var actions = map[string]func(*machine, [3]int){
	nothing:                 nil,
	"create":                (*machine).create,
	"create static":         (*machine).createStatic,
	"recreate mirror":       (*machine).recreateMirror,
	"report":                (*machine).reportRunning,
	"report more":           (*machine).reportRunning,
	"report in part":        (*machine).reportInPart,
	"report a detail":       (*machine).reportDetail,
	"end":                   (*machine).endPod,
	"stop containers":       (*machine).stopContainers,
	"flip readiness":        (*machine).flip,
	"flip readiness more":   (*machine).flip,
	"finish":                (*machine).finish,
	"end, delete, finish":   (*machine).wholeEnd,
	"reclaim":               (*machine).reclaim,
	"delete by a user":      (*machine).deleteByUser,
	"force delete":          (*machine).forceDelete,
	"recreate elsewhere":    (*machine).recreateElsewhere,
	"second writer":         (*machine).secondWriter,
	"webhook":               (*machine).webhook,
	"fault":                 (*machine).startFault,
	"fault ends":            func(m *machine, _ [3]int) { m.endFault() },
	"backup":                (*machine).backUp,
	"restore":               (*machine).restore,
	"disk":                  (*machine).setDisk,
	"withdraw":              (*machine).withdraw,
	"node flaps":            (*machine).flap,
	"many end":              (*machine).endMany,
	"chatty writer":         (*machine).chat,
	"watch lags":            (*machine).lagBehind,
	"watch catches up":      func(m *machine, _ [3]int) { m.catchUp() },
	"wait":                  (*machine).wait,
	"flush":                 (*machine).flush,
	"remove orphans":        (*machine).removeOrphans,
	"crash and start again": (*machine).restart,
}

// runProgram returns what was violated, or nothing.
func runProgram(kind kind, program []step) string {
	m := newMachine(kind)
	defer func() {
		m.replaceDisk(diskState{})
		m.stop()
	}()
	m.create([3]int{})
	m.create([3]int{})
	m.createStatic([3]int{1})
	for i, s := range program {
		actions[s.Action](m, s.Choices)
		synctest.Wait()
		m.checkStep()
		if broken := m.violations(); broken != "" {
			return fmt.Sprintf("after step %d, %s: %s", i, s.Action, broken)
		}
		if kind.Crashes {
			m.restart(s.Choices)
			synctest.Wait()
			m.checkStep()
		}
	}
	m.heal()
	return m.violations()
}

// heal ends everything that is wrong with the world, and looks when the API's pods say what
// the node says, without a new event.
func (m *machine) heal() {
	m.replaceDisk(diskState{})
	m.endFault()
	for _, s := range m.subjects {
		stopped := s.running && s.ended
		m.edit(func() {
			s.running = s.running && !s.ended
			s.unreclaimed = false
		})
		if stopped && !m.kind.Safety && !s.lost { // only a report says so
			m.report(s, ended(s.pod, 137))
		}
	}
	m.webhook([3]int{})
	m.catchUp()
	m.healed = time.Now()
	m.checkEach((*machine).graveBy, (*machine).checkGrave)
	m.checkEach((*machine).deliveredBy, (*machine).checkDelivered)
	for range 4 {
		m.wait([3]int{60_000})
	}
	m.checkAll((*machine).checkDelivered)
	pass(time.Hour)
	m.checkAll((*machine).checkDelivered)
	m.checkRemains()
}

// checkEach checks each pod at its own time.
func (m *machine) checkEach(by func(*machine, *subject) time.Time, check func(*machine, *subject, string)) {
	due := map[*subject]time.Time{}
	for _, s := range m.subjects {
		due[s] = by(m, s)
	}
	subjects := slices.SortedStableFunc(slices.Values(m.subjects), func(a, b *subject) int { return due[a].Compare(due[b]) })
	for _, s := range subjects {
		pass(time.Until(due[s]))
		check(m, s, m.sinceHealed())
	}
}

func (m *machine) checkAll(check func(*machine, *subject, string)) {
	for _, s := range m.subjects {
		check(m, s, m.sinceHealed())
	}
}

func (m *machine) sinceHealed() string {
	return fmt.Sprintf("%s after all faults ended", time.Since(m.healed))
}
