package api

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/observe"
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

// AuditSource is what an audit has found. Its methods are called from any goroutine and return quickly;
// what they return is not changed afterwards. Changes are announced by [Source.Watch]: with the UID of
// the pod, or an empty one for the node and its sides.
type AuditSource interface {
	Report() observe.Report
	// Pictures are what each side says of a pod.
	Pictures(uid types.UID) []observe.Picture
}

// GuardSource is what the guard of a kubelet knows. Changes are announced as those of the node.
type GuardSource interface {
	Report() guard.Report
}

// LoadSource is how much of its resources the node uses. It is read again and again, so that no change is
// announced.
type LoadSource interface {
	Load() guard.Load
}

// AlertSource is what rules have found, and what is kept from the outputs. Its methods are called from
// any goroutine and return quickly. Changes are announced as those of an [AuditSource] are.
type AlertSource interface {
	Alerts() []Alert
	Silences() []Silence
	// Silence stores a silence without ID and Created, and returns it with them. The server has checked
	// it.
	Silence(Silence) (Silence, error)
	// Expire ends a silence. If there is none of this ID the error is [ErrNoSilence].
	Expire(id string) error
}

// ErrNoSilence: there is no silence of an ID.
var ErrNoSilence = errors.New("there is no such silence")

// Pod is what a node knows of one pod.
type Pod struct {
	Facts explain.Facts
	// AcceptedAt is when the API server took the newest version that it knows; zero if unknown.
	AcceptedAt time.Time
}
