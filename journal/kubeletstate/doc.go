// Package kubeletstate imports the allocations that a kubelet left on a node, for nodes that
// change from a kubelet to statusd: Import reads a checkpoint file into a journal.
package kubeletstate
