// Package runtimememory has the common code of runtimes that keep their pods and the logs of
// containers in memory: the table of pods, and a log that can be followed.
package runtimememory
