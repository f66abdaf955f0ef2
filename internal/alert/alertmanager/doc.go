// Package alertmanager is the output of rules to Prometheus' Alertmanager, by its API v2.
//
// One [Output] is one instance. With several instances for high availability each gets every alert, by a
// queue of its own, as Alertmanager's documentation asks of clients: no load balancer stands between.
//
// A firing alert is sent again each minute and expires after four, so that Alertmanager has it after
// its own restart and resolves it if statusd is gone for good. The end of an alert is sent at once.
package alertmanager
