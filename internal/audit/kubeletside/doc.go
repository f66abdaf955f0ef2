// Package kubeletside reads a kubelet's pods, for package audit.
//
//	side, err := kubeletside.New(kubeletside.Options{Node: "n1", Socket: kubeletside.DefaultSocket, URL: kubeletside.DefaultURL, …})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # Two ways
//
// A kubelet with the feature gate PodsAPI serves its pods on a Unix socket: the side lists them periodically and
// watches in between, and each pod has the status that the kubelet has decided. Every kubelet serves GET /pods on
// port 10250. There, the status of a pod from the API is a copy of the API's status, and only static pods have the
// kubelet's own status. [audit.Kubelet.KubeletStatuses] reports which of the two statuses the pods have.
//
// # Unknown, never empty
//
// An answer counts only if it is complete: a list of readable pods of this node, each with a UID. After any
// failure (a timeout, a refusal, another node's kubelet, a body that is too large) the side keeps the pods of the
// last answer and puts the reason into the Answer. A kubelet that has just started may answer with an incomplete
// list, since it serves before its sources have delivered; nothing in the answer shows that. Answer.Since is the
// time of the connection, so that an audit can give a kubelet time to fill its table.
//
// # Concurrency
//
// [New] starts nothing. [Side.Run] may be called once; all other methods may be called from any goroutine. The
// facts that [Side.Facts] returns are not changed afterwards.
package kubeletside
