// Package podsapi serves the kubelet's Pods API (KEP-4188): the gRPC service Pods of
// k8s.io/kubelet/pkg/apis/pods/v1alpha1 on a Unix socket, so that what is written for the kubelet's
// socket works with other node agents.
//
//	ListPods   all pods with the statuses that the node reports
//	GetPod     one of them by its UID, or NotFound
//	WatchPods  ADDED for each pod, INITIAL_SYNC_COMPLETE, then ADDED, MODIFIED and DELETED
//
// Until the node knows its pods, each of them fails with FailedPrecondition; the kubelet answers then as
// if there were none. Static pods have the UID of
// their manifest. Pods are whole: the socket must be for the owner of the node only.
//
// # Slow watchers
//
// The kubelet ends the stream of a watcher that is too slow. Here it gets the newest of each pod
// instead: what waits for it are UIDs, each at most once, and a pod is read when its turn comes. So it
// loses no final state, holds at most as much memory as there are pods, and delays no other.
package podsapi
