// Package scene provides a [view.Source] whose facts come from the steps of a timeline in a test file. Tests of rules and of the
// engine share it.
package scene
