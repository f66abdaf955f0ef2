// Package scenes plays faults of nodes: statusd observe beside a stock kubelet with containerd, a fault, and the
// audit's report of it. Each scene has its expectations; tests play all of them, and make observe-scenes writes
// the table of docs/evidence/scenes-and-cost.md.
//
// A scene waits for states, never for a time: a slow machine makes it longer, not wrong.
package scenes
