// Package deploy applies the manifests of deploy/observe, and holds the tests of what operators deploy beside
// statusd, in deploy/.
package deploy
