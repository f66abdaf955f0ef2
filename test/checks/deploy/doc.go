// Package deploy applies the manifests of deploy/observe, and holds the tests of the other files in deploy/
// that operators deploy with statusd.
package deploy
