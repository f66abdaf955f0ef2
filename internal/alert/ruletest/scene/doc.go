// Package scene has a node of which a test says what is known: a [view.Source] that is made of the steps of a timeline, as files
// of tests write them. Tests of rules and of the engine share it.
package scene
