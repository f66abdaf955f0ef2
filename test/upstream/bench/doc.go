// Command bench measures statusd's status manager against the kubelet's, both sides in the
// same run, on the same API server, with the same client settings, pods and statuses.
//
//	scenario × round × side ─► samples ─► median ─► table, build/bench.json, docs/evidence/benchmarks.md
//
// In each round every side is measured once, and the order of the sides turns around from
// round to round, so that neither always comes first. Where there is a ceiling, plain
// parallel patches without a manager, it is a third side. Nothing is asserted: the bars
// are printed beside the results as met or missed, and the program ends with success.
//
// The kubelet's manager cannot be stopped once it is started. After a run it is left with
// an empty cache, so that what remains of it sleeps.
package main
