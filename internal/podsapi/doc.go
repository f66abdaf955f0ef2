// Package podsapi serves the kubelet's Pods API (KEP-4188): the gRPC service Pods of
// k8s.io/kubelet/pkg/apis/pods/v1alpha1 on a Unix socket, so that clients of the kubelet's socket
// work with other node agents.
//
//	ListPods   all pods with the statuses that the node reports
//	GetPod     one of them by its UID, or NotFound
//	WatchPods  ADDED for each pod, INITIAL_SYNC_COMPLETE, then ADDED, MODIFIED and DELETED
//
// Until the node has its pods, each method fails with FailedPrecondition; the kubelet returns an empty
// answer instead. Static pods have the UID of their manifest. Pods are complete: only the owner of the
// node may have access to the socket.
//
// # Slow watchers
//
// The kubelet ends the stream of a watcher that is too slow. Here a slow watcher gets the newest
// object of each pod instead: its queue holds UIDs, each at most once, and a pod is read when its turn
// comes. So the watcher loses no final state, its queue is bounded by the number of pods, and it
// delays no other watcher.
package podsapi
