package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// NotReady implements [runtime.Gate]: why the node cannot take pods, in the words of the container runtime.
func (r *Runtime) NotReady() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

// fail notes why the node cannot take pods, nil if it can.
func (r *Runtime) fail(err error) {
	r.mu.Lock()
	before := r.problem
	r.problem = err
	r.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		r.options.Logger.Warn("container runtime is not ready", "err", err)
	case err == nil && before != nil:
		r.options.Logger.Info("container runtime is ready")
	}
}

// patience is for how long a container runtime may be silent before the node is not ready, as with the kubelet. A restart takes less, and pods of a node
// that is not ready lose their traffic.
const patience = 30 * time.Second

// down notes that the container runtime does not answer.
func (r *Runtime) down(err error) {
	r.wasDown.Store(true)
	r.mu.Lock()
	silent := time.Since(r.answered)
	r.mu.Unlock()
	if silent >= patience {
		r.fail(fmt.Errorf("container runtime is down: %w", err))
	}
}

// look asks the container runtime how it is.
func (r *Runtime) look(ctx context.Context) {
	response, err := r.cri.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		r.down(err)
		return
	}
	r.mu.Lock()
	r.answered = time.Now()
	r.mu.Unlock()
	var problems []error
	for kind, words := range map[string]string{
		runtimeapi.RuntimeReady: "container runtime not ready", runtimeapi.NetworkReady: "container runtime network not ready",
	} {
		for _, c := range response.GetStatus().GetConditions() {
			if c.Type == kind && !c.Status {
				problems = append(problems, fmt.Errorf("%s: %s=false reason:%s message:%s", words, c.Type, c.Reason, c.Message))
			}
		}
	}
	if r.wasDown.Swap(false) { // it may be another version
		if err := r.cri.learn(ctx); err != nil {
			r.wasDown.Store(true)
		}
	}
	r.fail(errors.Join(problems...))
}
