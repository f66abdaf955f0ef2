// Package logs reads the logs of the kernel, of the kubelet and of the container runtime, and reports the
// lines that mean a problem.
//
// A [Rule] is a regular expression with the reason that it stands for. [DefaultRules] cover what
// node-problem-detector's monitors report. What a rule finds is a [Problem]: it is counted, given to a
// function of the caller, and, if it lasts, made a [Condition].
//
// Positions in the logs are kept in a file, so that a restart neither loses a line nor reports one twice. A
// flood of lines costs bounded memory and a bounded share of one CPU: the reader falls behind, which
// [Monitor.Report] shows, rather than taking more.
package logs
