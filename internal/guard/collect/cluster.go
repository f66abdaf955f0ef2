package collect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"google.golang.org/grpc"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/nodelease"
)

// renewal remembers when a renewal of the lease was noticed.
type renewal struct {
	renewed, seen time.Time
}

func (r *renewal) take(renewed, now time.Time) (seen time.Time) {
	if !renewed.Equal(r.renewed) {
		r.renewed, r.seen = renewed, now
	}
	return r.seen
}

// askLease reads the lease, which shows that the API server answers too. An answer that refuses it is one.
func (c *Collector) askLease(ctx context.Context, now time.Time) (again bool) {
	begin := time.Now()
	lease, err := c.o.Client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(ctx, c.o.Node, metav1.GetOptions{})
	answer := guard.Answer{Answered: true, OK: true, Text: "ok", Took: time.Since(begin)}
	fact := guard.NotKnown[guard.Lease](now, "")
	switch status := apierrors.APIStatus(nil); {
	case err == nil:
		fact = guard.Read(now, c.leaseFact(lease, now))
	case apierrors.IsNotFound(err):
		fact = guard.Read(now, guard.Lease{})
	case errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError: // 401, 403, 429: it answers
		fact.Why = err.Error()
	case errors.Is(ctx.Err(), context.Canceled): // we end, not the API server
		return true
	default:
		answer = guard.Answer{Answered: errors.As(err, &status), Text: cause(err), Took: answer.Took}
		fact.Why = "the API server does not answer"
	}
	c.set(func(e *guard.Evidence) { e.APIServer, e.Lease = guard.Read(now, answer), fact })
	return !answer.OK
}

func (c *Collector) leaseFact(lease *coordinationv1.Lease, now time.Time) guard.Lease {
	fact := guard.Lease{Exists: true}
	if lease.Spec.RenewTime != nil {
		fact.Renewed = lease.Spec.RenewTime.Time
	}
	fact.Duration = nodelease.Term(lease)
	if lease.Spec.HolderIdentity != nil {
		fact.Holder = *lease.Spec.HolderIdentity
	}
	for _, e := range lease.ManagedFields {
		if nodelease.Owns(e, "f:renewTime") {
			fact.Writer = e.Manager
		}
	}
	fact.Foreign = nodelease.Foreign(lease, "f:renewTime") != nil
	fact.Seen = c.renewed.take(fact.Renewed, now)
	return fact
}

// late is the age of a lease at which a dry-run write is tried: twice the renewal interval.
const late = 20 * time.Second

// askWrites tries a write of the lease as a dry run, once the lease is not renewed in time: an API server may answer reads and refuse
// writes. It passes authorization and admission, and stores nothing.
func (c *Collector) askWrites(ctx context.Context, now time.Time) (again bool) {
	c.mu.Lock()
	lease := c.last.Lease
	c.mu.Unlock()
	fact := guard.NotKnown[guard.Answer](now, "not tried: the lease is renewed, or not known")
	if lease.Known && lease.Value.Exists && now.Sub(lease.Value.Seen) > late && now.Sub(lease.Value.Renewed) > late {
		begin := time.Now()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"statusd/dry-run":%q}}}`, now.UTC().Format(time.RFC3339))
		_, err := c.o.Client.CoordinationV1().Leases(v1.NamespaceNodeLease).Patch(ctx, c.o.Node, types.MergePatchType, patch,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "statusd"})
		if errors.Is(ctx.Err(), context.Canceled) {
			return true
		}
		fact = writeFact(err, now, time.Since(begin))
	}
	c.set(func(e *guard.Evidence) { e.Writes = fact })
	return false
}

// writeFact is what the answer to a dry run says of the kubelet's writes. A refusal of this program's rights says nothing, unless they are
// the kubelet's own.
func writeFact(err error, now time.Time, took time.Duration) guard.Fact[guard.Answer] {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return guard.Read(now, guard.Answer{Answered: true, OK: true, Text: "a dry run of a write is accepted", Took: took})
	case !errors.As(err, &status):
		return guard.Read(now, guard.Answer{Text: cause(err), Took: took})
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource") && !strings.Contains(err.Error(), `User "system:node:`),
		apierrors.IsNotFound(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err), apierrors.IsTooManyRequests(err):
		return guard.NotKnown[guard.Answer](now, err.Error())
	}
	return guard.Read(now, guard.Answer{Answered: true, Text: err.Error(), Took: took})
}

// askRuntime asks the runtime for its status. A network that is not ready is no fault of the runtime.
func (c *Collector) askRuntime(ctx context.Context, now time.Time) (again bool) {
	begin := time.Now()
	c.cri.ResetConnectBackoff() // it is opened again at once, not after the pause of gRPC, which grows to minutes
	status, err := cri.NewRuntimeServiceClient(c.cri).Status(ctx, &cri.StatusRequest{}, grpc.WaitForReady(true))
	if errors.Is(ctx.Err(), context.Canceled) {
		return true
	}
	answer := runtimeAnswer(status, err, time.Since(begin))
	c.set(func(e *guard.Evidence) { e.Runtime = guard.Read(now, answer) })
	return !answer.OK
}

func runtimeAnswer(status *cri.StatusResponse, err error, took time.Duration) guard.Answer {
	if err != nil {
		return guard.Answer{Text: err.Error(), Took: took}
	}
	for _, condition := range status.GetStatus().GetConditions() {
		if condition.Type == cri.RuntimeReady && !condition.Status {
			return guard.Answer{Answered: true, Text: condition.Reason + " " + condition.Message, Took: took}
		}
	}
	return guard.Answer{Answered: true, OK: true, Text: "ready", Took: took}
}
