// Package podvolume is what the runtimes of this machine have in common about the volumes of pods: it keeps contents that come from the
// API up to date, checks and makes what hostPath volumes name, and makes sub-paths without leaving their volume.
package podvolume
