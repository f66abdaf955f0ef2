// Package architecture holds the tests of the tree's structure: the allowed imports between
// packages, a doc comment for each package, and a root module without k8s.io/kubernetes. It has no
// code of its own.
package architecture
