// Package engine evaluates alert rules when facts of a node and its pods change, and sends alerts to outputs.
//
//	set, err := ruleset.Load("/etc/statusd/rules")
//	e, err := engine.New(engine.Options{Source: source, Set: set, Outputs: outputs, StateFile: file})
//	go e.Run(ctx)
//	e.Reload(other) // alerts of rules that are the same go on
//	e.Alerts()      // the engine is a view.AlertSource
//
// # How it works
//
// A change of a pod triggers the evaluation of its subject: the facts are read once, and all rules of its scopes are
// evaluated over them. Functions of time note the next instant at which their value can change, and the subject is
// evaluated again at that instant; a heap orders the instants. No step iterates over all pods.
//
// The core (core, turn, move, tracked) has no clock and no goroutine: time is an argument, and the core collects records to
// write and notifications to send. The [Engine] is the goroutine around it; a [Timeline] drives the same core in tests of
// rules.
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
package engine
