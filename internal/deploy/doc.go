// Package deploy holds the tests of what operators deploy beside statusd, in deploy/.
package deploy
