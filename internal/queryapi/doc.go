// Package queryapi answers questions about a node over HTTP: which pods there are, why each is in its
// state, what happened before, and how far the API server knows it.
//
//	GET /pods                         v1.PodList, as the kubelet serves it
//	GET /apis/v1/pods                 view.PodList: one view.PodSummary per pod
//	GET /apis/v1/pods/NAMESPACE/NAME  view.PodDetail: explanation, containers, history, delivery
//	GET /apis/v1/node                 view.NodeDetail
//	GET /apis/v1/audit                whether what the API reports is true: an audit.Report
//	GET /apis/v1/guard                how healthy the kubelet is: a guard.Report
//	POST /apis/v1/guard/maintenance   until when the guard restarts nothing: a [Maintenance]
//	GET /apis/v1/load                 how much of its resources the node uses: a load.Load
//	GET /apis/v1/alerts               [AlertList]
//	GET /apis/v1/silences             [SilenceList]; POST and DELETE on the Unix socket only
//	GET /apis/v1/watch                changes as server-sent events, resumable
//	GET /openapi.json                 this list, for programs
//
// Errors are metav1.Status objects. Facts come from a [view.Source]: an agent that runs the pods, or a program that
// only observes them. [view.AuditSource], [view.GuardSource] and [view.AlertSource] add their findings; a server
// without such a source answers that the data is not available.
//
// # The watch
//
// One goroutine, [Server.Run], computes the summary of a changed pod once for all watchers, and
// assigns the next revision. A watcher is a position in the order of revisions: it holds no queue,
// so a slow watcher costs nothing, delays no other, and gets the newest summary of each pod later.
// Without watchers, changed pods are only noted.
//
// A summary changes when a fact changes. Passing time alone, which changes "next start in 38 s", is
// no change: see fingerprint.go.
//
// # Concurrency
//
// New starts nothing; Run blocks. Handlers may be called before, during and after Run; a watch sends
// changes only during Run.
package queryapi
