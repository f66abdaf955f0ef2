// Package podusage has the common code of this machine's runtimes for the usage of pods: rates of CPU time, and the size of files.
package podusage
