// Package alert has the types of alerts and silences: what rules raise, outputs deliver, and the query API shows.
//
// The packages below it are the way of an alert:
//
//	rules         files of rules, the language of expressions, the engine that evaluates them, tests of rules
//	deliver       queues and retries for outputs
//	alertmanager  output: Alertmanager's API
//	webhook       output: signed requests
//	kubeoutputs   outputs: Events, Node conditions, the log
//	actions       what rules may do: evict, restart, taint, cordon
//	endpoint      addresses, TLS and credentials of receivers
//	alertsetup    wires all of the above for a process
package alert
