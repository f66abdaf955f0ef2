// Package ruletest runs tests of alert rules: files that say what becomes known when, and which alerts there are then.
//
//	results, err := ruletest.Run("rules_test.yaml")
//
// A test runs in the time of its timeline, without a clock, through the core of the engine that evaluates the rules on a node.
// docs/reference/alert-rules.md has the format.
package ruletest
