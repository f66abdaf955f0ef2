// Package machine watches the machine of a node: its logs, by [monitor.Monitor], and its load, by
// [resources.Reader]. It passes on what it finds to the history, as Events, conditions of the Node and
// metrics, each as far as it is allowed to.
package machine
