// Package logfile writes and reads the log of a container: the files log, log.1,
// log.2, … of one directory, the newest first, in the format that container runtimes
// of Kubernetes share, so that log collectors understand them:
//
//	2026-01-02T15:04:05.999999999Z stdout F the line
//
// The tag is P for a piece of a line that goes on in the next entry of the stream, and
// F for its end.
package logfile
