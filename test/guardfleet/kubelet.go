package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/guard"
)

// version is what a kubelet does wrong.
type version int

const (
	good    version = iota
	leaves          // works and renews no lease
	crashes         // ends soon after each start
)

// lasts is how long a kubelet that crashes runs.
const lasts = 5 * time.Second

// kubelet is a stand-in for one: a process that can be restarted, /healthz, and a lease.
type kubelet struct {
	node     string
	client   kubernetes.Interface
	listener net.Listener

	mu       sync.Mutex // guards what follows
	version  version
	pid      int
	started  time.Time
	ended    time.Time // zero: it runs
	restarts []time.Time
}

// Name implements [guard.Service].
func (k *kubelet) Name() string { return "kubelet" }

// State implements [guard.Service].
func (k *kubelet) State(context.Context) (guard.Process, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.age()
	if !k.ended.IsZero() {
		code := 1
		return guard.Process{Sure: true, ExitCode: &code, Ended: k.ended}, nil
	}
	return guard.Process{Exists: true, Sure: true, PID: k.pid, Started: k.started}, nil
}

// age ends the process of a kubelet that crashes. The caller holds the lock.
func (k *kubelet) age() {
	if k.version == crashes && k.ended.IsZero() && time.Since(k.started) > lasts {
		k.ended = k.started.Add(lasts)
	}
}

// Start implements [guard.Service].
func (k *kubelet) Start(ctx context.Context) error { return k.Restart(ctx) }

// Stop implements [guard.Service].
func (k *kubelet) Stop(context.Context) error { return nil }

// Restart implements [guard.Service].
func (k *kubelet) Restart(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restarts = append(k.restarts, time.Now())
	k.pid, k.started, k.ended = k.pid+1, time.Now(), time.Time{}
	return nil
}

// upgrade replaces the kubelet by another version, which starts.
func (k *kubelet) upgrade(v version) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version, k.pid, k.started, k.ended = v, k.pid+1, time.Now(), time.Time{}
}

func (k *kubelet) runs() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.age()
	return k.ended.IsZero()
}

func (k *kubelet) renews() bool {
	running := k.runs()
	k.mu.Lock()
	defer k.mu.Unlock()
	return running && k.version != leaves
}

// ServeHTTP answers /healthz.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !k.runs() {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close() // as if nothing listened
		}
		return
	}
	_, _ = w.Write([]byte("ok"))
}

const (
	renewal = 10 * time.Second // the kubelet's pause between renewals, and the longest that one may take
	term    = int32(40)
)

var retries = backoff.Schedule{First: 200 * time.Millisecond, Limit: 7 * time.Second}

// run renews the lease until ctx ends.
func (k *kubelet) run(ctx context.Context) {
	for failed := 0; ctx.Err() == nil; {
		pause := renewal
		if k.renews() {
			limited, cancel := context.WithTimeout(ctx, renewal)
			err := k.renew(limited)
			cancel()
			if failed++; err == nil {
				failed = 0
			} else {
				pause = retries.Random(failed)
			}
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

func (k *kubelet) renew(ctx context.Context) error {
	leases := k.client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	now, seconds := metav1.NewMicroTime(time.Now()), term
	lease, err := leases.Get(ctx, k.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.node},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &k.node, LeaseDurationSeconds: &seconds, RenewTime: &now}}, metav1.CreateOptions{FieldManager: "kubelet"})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}
