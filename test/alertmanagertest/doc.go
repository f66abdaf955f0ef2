// Package alertmanagertest runs Debian's prometheus-alertmanager for tests and measurements: on a free
// loopback port, without a cluster, with its files in the caller's directory.
package alertmanagertest
