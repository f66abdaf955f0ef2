// Package scenes plays what goes wrong on nodes: statusd observe beside a stock kubelet with containerd, something
// that breaks, and what the audit then says. Each scene has what it expects; tests play all of them, and
// make observe-scenes writes the table of docs/evidence/scenes-and-cost.md.
//
// A scene waits for states, never for a time: a slow machine makes it longer and not wrong.
package scenes
