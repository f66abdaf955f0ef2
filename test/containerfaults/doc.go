// Command containerfaults runs a node of statusd on a containerd of its own with many pods, and breaks both by seed: containerd killed, frozen,
// or restarted without its state, shims and containers killed, statusd killed and frozen, the image store emptied, the disk full. After each fault
// it waits until what the API says of every container is what containerd says, and at the end it looks for what is left of the pods.
//
//	containerfaults -faults 200 -seed 1
package main
