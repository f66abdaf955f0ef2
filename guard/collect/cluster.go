package collect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/statusd/statusd/guard"
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
	if lease.Spec.LeaseDurationSeconds != nil {
		fact.Duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	fact.Seen = c.renewed.take(fact.Renewed, now)
	return fact
}

func (c *Collector) askAPI(_ context.Context, now time.Time) (again bool) {
	answer, lease := c.o.API(now)
	c.set(func(e *guard.Evidence) { e.APIServer, e.Lease = answer, lease })
	return false
}

// dialRuntime makes a connection that is opened with the first request.
func dialRuntime(endpoint string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("collect: runtime %s: %w", endpoint, err)
	}
	return conn, nil
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

// RuntimeReady asks a runtime once whether it is ready.
func RuntimeReady(ctx context.Context, endpoint string) error {
	conn, err := dialRuntime(endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	status, err := cri.NewRuntimeServiceClient(conn).Status(ctx, &cri.StatusRequest{})
	if answer := runtimeAnswer(status, err, 0); !answer.OK {
		return errors.New(answer.Text)
	}
	return nil
}
