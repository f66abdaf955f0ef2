// Package actions executes actions about alerts within the operator's policy.
//
// All actions are off unless a [Policy] names them. [Decide] is the one arbiter, a pure function: an action is done
// only within the budget of its kind and of its rule, not within the cool-down of its subject, and never while
// another action on the same subject is in progress, so that two rules do not fight over one pod. Each action is
// recorded in a [Ledger] on disk before it begins: a crash does not give the budget back.
//
// An [Actor] is both the actor of a rules engine and one of its outputs: the output reports which alerts
// are over; then the actor undoes taints and cordons, and drops waiting actions.
package actions
