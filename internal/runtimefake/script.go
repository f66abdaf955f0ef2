package runtimefake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// Behavior is the behavior of one attempt of a container. The zero value runs until it is stopped,
// and then ends at once by SIGTERM.
type Behavior struct {
	// StartError makes the start fail. With Listed the attempt is in the list all the
	// same, exited with reason StartError.
	StartError error
	Listed     bool

	// ImageID is the container's image ID.
	ImageID string
	// Waiting, if set, keeps the container from running: it is created only.
	Waiting *Waiting

	// Lives is how long the container runs by itself; 0 is forever. ExitCode and
	// Message are how it then ends.
	Lives    time.Duration
	ExitCode int32
	Message  string

	// StopsAfter is how long the container takes to end after a stop; a container that needs longer
	// than its grace is killed. StopExit is how it ends if it is in time, by SIGTERM if zero.
	StopsAfter time.Duration
	StopExit   *Exit
}

// Waiting is why a container does not run yet.
type Waiting struct {
	// For is how long; 0 is until Begin.
	For             time.Duration
	Reason, Message string
}

// Exit is how a container ends.
type Exit struct {
	Code, Signal int32
	// Reason is worked out from the code if empty.
	Reason, Message string
}

func (e Exit) reason() string {
	byCode := runtime.ReasonError
	if e.Code == 0 {
		byCode = runtime.ReasonCompleted
	}
	return cmp.Or(e.Reason, byCode)
}

func (b Behavior) exit() Exit { return Exit{Code: b.ExitCode, Message: b.Message} }

func (b Behavior) stopExit() Exit {
	if b.StopExit != nil {
		return *b.StopExit
	}
	return Exit{Code: 128 + int32(syscall.SIGTERM), Signal: int32(syscall.SIGTERM)}
}

// scripts are the test's answers to the calls of the code under test.
type scripts struct {
	start  func(pod *v1.Pod, container *v1.Container, attempt int) Behavior
	exec   func(ctx context.Context, container runtime.Container, command []string) (runtime.ExecResult, error)
	reject func(pod *v1.Pod) []runtime.Unsupported
}

// Script sets the behavior of containers started from now on.
func (r *Runtime) Script(script func(pod *v1.Pod, container *v1.Container, attempt int) Behavior) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts.start = script
}

// ExecWith sets the results of commands inside containers.
func (r *Runtime) ExecWith(script func(ctx context.Context, container runtime.Container, command []string) (runtime.ExecResult, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts.exec = script
}

// RejectWith sets the result of Check.
func (r *Runtime) RejectWith(script func(pod *v1.Pod) []runtime.Unsupported) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts.reject = script
}

// Begin lets a container run that waits.
func (r *Runtime) Begin(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.pods.Find(id)
	if err != nil {
		panic(err) // a mistake of the test
	}
	r.begin(c)
}

// SetWaiting changes why a container waits.
func (r *Runtime) SetWaiting(id, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.pods.Find(id)
	if err != nil || c.State != runtime.Created {
		panic(fmt.Sprintf("container %s does not wait (%v)", id, err)) // a mistake of the test
	}
	c.Reason, c.Message = reason, message
	r.Notify(c.uid)
}

// Exit ends a running container now.
func (r *Runtime) Exit(id string, exit Exit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.pods.Find(id)
	if err != nil {
		panic(err) // a mistake of the test
	}
	r.end(c, exit)
}

// SetClock moves the clock by which the times of containers are recorded from now on to
// this far ahead of the test's, or behind it.
func (r *Runtime) SetClock(ahead time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skew = ahead
}

// Reboot simulates a restart of the machine: no container runs any more, the exit codes of containers
// that ran are unknown, and all of them have EarlierPlace set.
func (r *Runtime) Reboot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, p := range r.pods.Pods {
		for _, c := range p.Attempts {
			if c.State != runtime.Exited {
				r.end(c, Exit{Code: runtime.ExitCodeUnknown, Reason: runtime.ReasonUnknown})
			}
			c.EarlierPlace = true
		}
		p.PlaceSince = time.Now()
		r.Notify(uid)
	}
}

// Vanish forgets a pod as if the runtime's disk had been wiped.
func (r *Runtime) Vanish(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods.Pods, uid)
	r.Notify(uid)
}

// WriteLog appends to a container's log, as its stdout.
func (r *Runtime) WriteLog(id, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.pods.Find(id)
	if err != nil {
		panic(err) // a mistake of the test
	}
	fmt.Fprint(c.log.Stream(runtime.Stdout), text)
}

// Fail lets the next calls of a method ("StartPod", "Pods", …) fail, one for each
// error, before they do anything.
func (r *Runtime) Fail(method string, errs ...error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors[method] = append(r.errors[method], errs...)
}

// Calls are the calls so far that change something or run a command, in order:
// "StartContainer web-0/nginx/1", "StopContainer fake://3 30s".
func (r *Runtime) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// called needs mu.
func (r *Runtime) called(method, what string) error {
	r.calls = append(r.calls, fmt.Sprintf("%s %s", method, what))
	return r.fails(method)
}

// fails needs mu.
func (r *Runtime) fails(method string) error {
	errs := r.errors[method]
	if len(errs) == 0 {
		return nil
	}
	r.errors[method] = errs[1:]
	return errs[0]
}
