// Package guard judges the health of a kubelet by evidence, decides whether a restart would help, and
// keeps what was known before each one.
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
// Signs speak against a kubelet: its process is gone or stopped, /healthz fails or is silent, its lease is not
// renewed, it lists no containers any more, statuses are behind. A sign counts once it was seen several
// times over some time: one failed request never changes a verdict. What is not known never counts. A lease that is
// renewed contradicts a process that is not found and a port that refuses: then the guard is what looks
// in the wrong place. What is not the kubelet's fault (runtime, API server, disk, certificate) makes it degraded,
// and says what would help in place of a restart.
//
// # Concurrency
//
// Judge and Decide are pure functions. A Guard's methods may be called from any goroutine; Run is called once.
package guard
