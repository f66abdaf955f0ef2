// Package observer is the process of statusd observe: it runs beside a kubelet, changes nothing by
// default, and reports whether the API's view of the node is true.
//
//	o, err := observer.New(config, observer.Options{})
//	err = o.Run(ctx)
//
// # The loop
//
// Four sides (package audit) signal changes. Changes are collected for a short time, then the facts of all sides
// are audited together, and differences from the previous audit become history records, metrics, Events, the
// condition of the Node and repairs. An audit is also made at the time when a difference becomes drift by its
// age alone. After a change of one side the other sides are polled sooner than their interval, so that a
// difference that is only in transit is gone before it could become drift.
//
// # What it writes
//
// By default nothing: neither to the API nor to the runtime. The section outputs of the config and each kind of
// repair enable writes. The state directory holds the history and the auditor's measurements.
//
// # Concurrency
//
// [New] starts nothing. [Observer.Run] may be called once. One goroutine audits and owns the auditor; its findings are
// an immutable view that is replaced as a whole, so that queries take no lock.
package observer
