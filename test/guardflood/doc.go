// Command guardflood floods a log at 100 MB/s and measures the cost of reading it with internal/machine/logs: make
// guard-flood.
//
// The log is rotated by renaming, and few old files are kept. One side reads it as statusd does: with the default
// rules, whose texts are searched for before any expression is tried. The other sides have the same rules without
// texts, so that each expression is tried on each line: once with the same share of a CPU, and once with a whole CPU.
package main
