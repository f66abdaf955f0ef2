// Package alertmanager is the output of rules to Prometheus' Alertmanager, by its API v2.
//
// One [Output] serves one instance. With several instances for high availability each instance gets
// every alert, by its own queue, as Alertmanager's documentation requires: no load balancer in between.
//
// A firing alert is sent again each minute and expires after four, so that Alertmanager has it after
// its own restart and resolves it if statusd is gone for good. The end of an alert is sent at once.
package alertmanager
