package actions_test

import (
	"fmt"
	"time"

	"github.com/statusd/statusd/internal/alert/actions"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// Two rules want something done to one pod: the second waits for the cool-down.
func ExampleDecide() {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	policy := actions.Policy{ruleset.ActionEvict: {}, ruleset.ActionRestartContainer: {CoolDown: 10 * time.Minute}}
	ledger := &actions.Ledger{Entries: []actions.Entry{{Rule: "Leaks", Kind: ruleset.ActionRestartContainer, Subject: "pod/1", At: now.Add(-time.Minute)}}}
	verdict := actions.Decide(actions.Request{Rule: "Stuck", Action: ruleset.Action{Kind: ruleset.ActionEvict}, Subject: "pod/1"}, ledger, policy, now)
	fmt.Println(verdict.Refused)
	// Output: cool-down until 2026-11-01T12:09:00Z after restartContainer for rule Leaks
}
