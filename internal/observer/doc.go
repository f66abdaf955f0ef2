// Package observer is the process of statusd observe: it runs beside a kubelet, changes nothing by
// default, and reports whether what the API says about the node is true.
//
//	o, err := observer.New(config, observer.Options{})
//	err = o.Run(ctx)
//
// # The loop
//
// Four sides (package observe) say when something has changed. Changes are collected for a moment, then
// the facts of all sides are audited as a whole, and what differs from the audit before becomes records of the
// history, metrics, events, the condition of the Node and repairs. An audit is also made when a
// difference becomes drift without news. After a change of one side the others are asked sooner than their pace,
// so that a difference that is only news on its way is gone before it could become drift.
//
// # What it writes
//
// By default nothing: neither to the API nor to the runtime. The section outputs of the config and each kind of
// repair allow it. In the state directory it keeps the history, and what the audit has
// measured.
//
// # Concurrency
//
// [New] starts nothing. [Observer.Run] may be called once. One goroutine audits and owns the auditor; what it finds is
// a view that is replaced as a whole and never changed, so that queries take no lock.
package observer
