// Package runtimememory is what runtimes share that keep their pods and the logs of containers in
// memory: the table of pods, and a log that can be followed.
package runtimememory
