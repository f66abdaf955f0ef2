// Package machine watches the machine of a node: its logs, by [logs.Monitor], and its load, by
// [load.Reader]. It passes its findings on to the history, and as Events, conditions of the Node and
// metrics if each is enabled.
package machine
