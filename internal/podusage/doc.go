// Package podusage is what the runtimes of this machine have in common about what pods use: rates of CPU time, and the size of files.
package podusage
