// Package guard judges the health of a kubelet by evidence, decides whether a restart would help, and
// keeps the evidence before each restart.
//
//	verdict, state = guard.Judge(evidence, state, now)           // pure: what the evidence amounts to
//	decision := guard.Decide(verdict, policy, history, now)      // pure: restart, or why not and what would help
//
// [Guard] does both every few seconds, and at once when the process changes:
//
//	g, err := guard.New(guard.Options{Kubelet: unit, Collect: collector.Collect, Policy: policy, Outputs: outputs})
//	go g.Run(ctx)
//	report := g.Report()
//
// # Verdicts
//
// Signs speak against a kubelet: its process is gone or stopped, /healthz fails or does not answer, its lease is
// not renewed, it lists no containers, its statuses are behind. A sign counts once it was observed several times
// over some time: one failed request never changes a verdict. Unknown facts never count. A renewed lease
// contradicts a missing process and a refusing port: the guard is then looking at the wrong process or port. Causes
// outside the kubelet (runtime, API server, disk, certificate) make it degraded, and the verdict names a remedy
// other than a restart.
//
// # Concurrency
//
// Judge and Decide are pure functions. A Guard's methods may be called from any goroutine; Run is called once.
package guard
