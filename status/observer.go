package status

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Observer receives every change of every pod, including changes that a [Subscription] merges.
// [github.com/statusd/statusd/history.Store] is an Observer. Its methods are called under the lock of
// the cache, so that the changes of a pod come in order. They must return at once, take no lock that
// is held during a call of the manager, and not call the manager.
type Observer interface {
	// Changed is called for each stored change.
	Changed(podstatus.Change)
	// Accepted is called when the API server has accepted a version of a pod, and with it all
	// earlier versions.
	Accepted(uid types.UID, version uint64, at time.Time)
	// Failed is called for each failed attempt to deliver a status, and when another writer has
	// changed a status back several times.
	Failed(podstatus.Undelivered)
	// Removed is called when the manager has forgotten a pod.
	Removed(uid types.UID, at time.Time)
}

// noObserver is the observer by default.
type noObserver struct{}

func (noObserver) Changed(podstatus.Change)              {}
func (noObserver) Accepted(types.UID, uint64, time.Time) {}
func (noObserver) Failed(podstatus.Undelivered)          {}
func (noObserver) Removed(types.UID, time.Time)          {}
