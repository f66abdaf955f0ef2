package api

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
)

// Source is what a node knows. Its methods are called from any goroutine and return quickly; what
// they return is not changed afterwards, by either side.
type Source interface {
	// UIDs returns the pods of the node.
	UIDs() []types.UID
	// Pod returns what is known of a pod, false if the node does not have it.
	Pod(uid types.UID) (Pod, bool)
	// Gone returns the pods that have gone and of which the history is still kept.
	Gone() []PodHistory
	// History returns what happened to the newest pod of a name, false if nothing is known. With an
	// empty name it is the history of the node.
	History(namespace, name string) (PodHistory, bool)
	// Node returns what is known of the node. Pods and History are left empty.
	Node() NodeDetail
	// Watch calls changed for each pod whose facts have changed, and with an empty UID for the node,
	// until ctx ends. It must not wait for changed, which returns at once.
	Watch(ctx context.Context, changed func(types.UID)) error
}

// Pod is what a node knows of one pod.
type Pod struct {
	Facts explain.Facts
	// AcceptedAt is when the API server took the newest version that it knows; zero if unknown.
	AcceptedAt time.Time
}
