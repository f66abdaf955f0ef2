// Package alert has the types of alerts and silences, which rules raise, outputs deliver, and the query API
// serves.
//
// The packages below it, in the order in which an alert passes them:
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
