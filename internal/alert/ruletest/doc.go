// Package ruletest runs tests of alert rules: files that list facts by time and the alerts expected at each time.
//
//	results, err := ruletest.Run("rules_test.yaml")
//
// A test runs in the time of its timeline, without a clock, through the same core that evaluates rules on a node.
// docs/reference/alert-rules.md describes the format.
package ruletest
