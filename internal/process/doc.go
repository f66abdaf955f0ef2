// Package process is what the long-running processes of statusd have in common: parts that start in
// order and stop in the reverse order, the endpoints for probes, scrapes and questions, the messages to
// systemd, the one sender of Events, and the kubeconfig. It is part of every node: it imports nothing that a node can do without.
package process
