// Package actions does about alerts what the operator has allowed, and nothing else.
//
// All actions are off unless a [Policy] names them. [Decide] is the one arbiter, a pure function: an action is
// done only within the budget of its kind and of its rule, not within the cool-down of its subject, and never while
// another action on the same subject is in progress, so that two rules do not fight over one pod. What was
// begun is in a [Ledger] on disk before it is done: a crash does not give the budget back.
//
// An [Actor] is both the actor of a rules engine and one of its outputs: as output it learns which alerts
// are over, undoes taints and cordons, and gives up what still waits.
package actions
