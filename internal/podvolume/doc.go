// Package podvolume has the common code of this machine's runtimes for the volumes of pods: it updates contents that come from the API,
// checks and makes the targets of hostPath volumes, and makes sub-paths without leaving their volume.
package podvolume
