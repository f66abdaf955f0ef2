// Command containerfaults runs a node of statusd on its own containerd with many pods, and breaks both by seed: containerd killed, frozen, or
// restarted without its state, shims and containers killed, statusd killed and frozen, the image store emptied, the disk full. After each fault it
// waits until the API's state of every container equals containerd's, and at the end it looks for remains of the pods.
//
//	containerfaults -faults 200 -seed 1
package main
