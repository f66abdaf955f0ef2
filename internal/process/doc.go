// Package process holds the common parts of statusd's long-running processes: ordered start and reverse-ordered stop, the
// endpoints for probes, metrics and queries, notifications to systemd, the sender of Events, and the kubeconfig. Every node links
// it, so it imports only packages that every node needs.
package process
