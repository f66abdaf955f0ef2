// Package pods is the table of the pods known on this node: by UID, by name, and from
// static pod to mirror pod and back.
//
// A source writes to the table ([Table.Set], [Table.Remove]); the status manager and the pod
// workers read it. Each lookup takes one or two map accesses and builds no map.
//
// A static pod comes from a manifest on the node, a mirror pod is its shadow in the
// API. The two are matched by namespace and name, never by UID, since the UID of a
// mirror is chosen by the API server and changes when the mirror is created again.
//
// All methods may be called from any goroutine. The table keeps the pointers that it is
// given and hands the same ones out: a pod must not be changed once it was passed in.
package pods
