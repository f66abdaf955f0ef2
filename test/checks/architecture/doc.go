// Package architecture holds the tests that keep the shape of the tree true: which
// package may import which, that each package says what it is for, and that the root
// module stays free of k8s.io/kubernetes. It has no code of its own.
package architecture
