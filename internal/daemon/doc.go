// Package daemon is what the long-running processes of statusd have in common: parts that start in
// order and stop in the reverse order, the endpoints for probes, scrapes and questions, the messages to
// systemd, events, the reading of a strict config file with its flags, and the kubeconfig.
package daemon
