// Command bench measures statusd's status manager against the kubelet's, both sides in the
// same run, on the same API server, with the same client settings, pods and statuses.
//
//	scenario × round × side ─► samples ─► median ─► table, build/bench.json, docs/evidence/benchmarks.md
//
// In each round every side is measured once, and the order of the sides is reversed from round to
// round, so that no side always comes first. Scenarios with a ceiling, plain parallel patches
// without a manager, have a third side. Nothing is asserted: the results are printed with their
// bars as met or missed, and the program ends with success.
//
// The kubelet's manager cannot be stopped once it is started. After a run its cache is empty, so
// that its remaining goroutines sleep.
package main
