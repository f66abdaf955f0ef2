// Package kubeletside asks a kubelet for its pods, for package observe.
//
//	side, err := kubeletside.New(kubeletside.Options{Node: "n1", Socket: kubeletside.DefaultSocket, URL: kubeletside.DefaultURL, …})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # Two ways
//
// A kubelet with the feature gate PodsAPI serves its pods on a Unix socket: they are listed at a pace and
// watched in between, and each has the status that the kubelet has decided. Every kubelet serves GET /pods on port
// 10250. There, the status of a pod from the API is the one that the kubelet last got from the API, and
// only static pods have the kubelet's own status; [observe.Kubelet] says which of the two it is.
//
// # Unknown, never empty
//
// An answer counts only if it is whole: a list of pods, each readable, with a UID, of this node. Everything
// else (a timeout, a refusal, another node's kubelet, a body that is too large) leaves the pods of the last answer
// with the reason in the Answer. A kubelet that has just started answers with the pods that it has so far,
// since it serves before its sources have delivered; nothing in the answer shows that. Answer.Since is
// when the connection was made, so that an audit can give a kubelet time to fill its table.
//
// # Concurrency
//
// [New] starts nothing. [Side.Run] may be called once; all other methods may be called from any goroutine. What
// [Side.Facts] returns is not changed afterwards.
package kubeletside
