package status

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Observer learns of every step of every pod, also of those that a [Subscription] joins: a
// [github.com/statusd/statusd/history.Store] is one. It is called under the lock of the cache, so that
// the steps of a pod come in order. It must return at once, take no lock that is held during a call
// of the manager, and not call back.
type Observer interface {
	// Changed is called for each stored change.
	Changed(podstatus.Change)
	// Accepted is called when the API server has accepted a version of a pod, and all before it.
	Accepted(uid types.UID, version uint64, at time.Time)
	// Failed is called for each try that has not delivered a status, and when another writer has
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
