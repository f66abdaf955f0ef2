// Package logs reads the logs of the kernel, of the kubelet and of the container runtime, and reports the
// lines that indicate a problem.
//
// A [Rule] is a regular expression with a reason. [DefaultRules] cover the reports of
// node-problem-detector's monitors. A match is a [Problem]: it is counted, passed to a function of the
// caller, and, if it lasts, turned into a [Condition].
//
// Positions in the logs are kept in a file, so that a restart neither loses a line nor reports one twice. A
// flood of lines costs bounded memory and a bounded share of one CPU: beyond the bound the reader falls
// behind, as [Monitor.Report] shows.
package logs
