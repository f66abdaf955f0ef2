// Package rules watches the state of a node and its pods by rules, and warns.
//
//	set, err := rules.Load("/etc/statusd/rules")        // all mistakes at once, with line and column
//	engine, err := rules.New(rules.Options{Source: source, Set: set, Outputs: outputs, StateFile: file})
//	go engine.Run(ctx)
//	engine.Reload(other)                                 // alerts of rules that are the same go on
//	engine.Alerts()                                      // it is an [api.AlertSource]
//
// A rule is an expression in CEL over a vocabulary that is made of what the query API answers. `statusd rules doc` prints
// it; docs/reference/alert-rules.md has it, and the format of files and of tests.
//
// # How it works
//
// A change of a pod has its subject looked at: the facts are read once, and all rules of its scopes are evaluated over
// them. Functions of time note the next instant at which their value can change, so that a subject is looked at again when
// its time has come and not before; a heap has these instants. Nothing looks at all pods.
//
// The core (core, turn, alert) has no clock and no goroutine: time is an argument, and what it wants to be written and
// passed on is collected. The [Engine] is the goroutine around it. Tests of rules drive the same core.
//
// # What is promised
//
//   - An alert is in the state file before an output has it, and stays there until all outputs have called
//     [Notification.Done]. Over kill -9 none is lost; some come twice.
//   - Changes of one pod that come faster than it is looked at are looked at once, as they are then. Rules about transitions see each record.
//   - An expression that needs a fact which is not known is not true.
//   - An expression has a bounded cost, estimated when it is loaded and counted when it is evaluated. A rule that costs
//     more rests; the others go on. Evaluation never holds up the source.
//   - The numbers and sizes of alerts, labels, annotations, silences and results of actions are bounded.
//
// # Concurrency
//
// All methods of [Engine] may be called from any goroutine, except Run, which is called once. Outputs, the actor and the
// functions of [Options] are called on the goroutine of Run and must not wait.
package rules
