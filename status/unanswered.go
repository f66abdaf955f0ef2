package status

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/statusd/statusd/internal/instant"
)

// A write that the manager has given up may still be carried out: by a server that is slow, or by a proxy that holds
// the request. It does no harm if it has the resource version of its base as a precondition and a newer status was
// stored since: the precondition fails, see [plan.guard]. Two writes have no such protection: one whose pod needs no newer write,
// because the status is again what the API has; and one that was sent without a resource version, see
// [turn.writeApart]. After such a write no newer version counts as accepted before the server has carried out the
// write, or certainly never will. The pod is read then.

// lateFor is how long a write may be carried out after the manager has given it up: the time that a kube-apiserver gives a
// request by default.
const lateFor = time.Minute

// unanswered is a write without an answer.
type unanswered struct {
	// version is the oldest that the server may still store.
	version uint64
	// guard is the resource version at which the write is taken, 0 if it is taken at any.
	guard revision
	until time.Time
}

// mayBeLate reports whether the API server may carry out a request in spite of its error. It does not if it has refused the
// request, or if no connection was made.
func mayBeLate(err error) bool {
	if utilnet.IsConnectionRefused(err) {
		return false
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusRequestTimeout
}

// noteUnanswered records a write without an answer.
func (c *cache) noteUnanswered(p *plan, guard revision, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[p.uid]; !ok || c.target(p.uid) != p.target {
		return
	}
	next := unanswered{version: p.version, guard: guard, until: now.Add(lateFor)}
	if last, ok := c.unanswered[p.uid]; ok && now.Before(last.until) && (last.guard == 0 || last.guard == guard) {
		next.version = min(next.version, last.version)
		next.guard = min(next.guard, last.guard)
		next.until = instant.Later(next.until, last.until)
	}
	c.unanswered[p.uid] = next
}

// mayRegress returns for how long an unanswered write may replace the version of the plan by an older one, zero if none may.
// The API's pod has the given resource version; read: it was read in this turn.
func (c *cache) mayRegress(p *plan, at revision, read bool, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, ok := c.unanswered[p.uid]
	switch {
	case !ok:
		return 0
	case u.guard != 0 && at > u.guard, read && !now.Before(u.until):
		delete(c.unanswered, p.uid)
		return 0
	case p.version <= u.version:
		return 0
	}
	return max(u.until.Sub(now), time.Millisecond)
}

// isLate reports whether a pod is to be read because a write without an answer was carried out by now, if it will be.
func (c *cache) isLate(uid types.UID, now time.Time) bool {
	u, ok := c.unanswered[uid]
	return ok && !now.Before(u.until)
}
