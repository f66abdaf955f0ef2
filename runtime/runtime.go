package runtime

import (
	"context"
	"errors"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Runtime runs pods. The package comment says what each implementation owes its caller.
type Runtime interface {
	// Version names the runtime as the node's status shows it: "process://v1.2.0".
	// What comes before "://" is also how its container IDs start.
	Version() string

	// Check names the fields of the pod that this runtime cannot honor: see [Refusal]. A pod with
	// none may be started. It is asked again before each start that is tried again. Check looks at the spec only and touches nothing.
	Check(pod *v1.Pod) []Unsupported

	// StartPod makes the place where the containers of the pod will run: volumes,
	// network, addresses. For a pod that already has one it does nothing, unless the
	// machine has restarted since: then it makes again what the restart took away.
	StartPod(ctx context.Context, pod *v1.Pod) error

	// StartContainer starts one attempt of a container of a started pod and returns
	// its ID, which no other start ever had. Attempts of a container count from 0 and
	// only grow. While an earlier attempt still runs it is an error.
	//
	// It may return while the container is [Created] and starts by itself, as after a long
	// pull. ctx ends when the pod must end: a pull should be given up then, while a container that exists is
	// better listed than left half made.
	//
	// A [*StartError] says why a container did not start. The ID is not empty when the
	// attempt is listed all the same, exited with reason [ReasonStartError].
	StartContainer(ctx context.Context, pod *v1.Pod, container *v1.Container, attempt int) (id string, err error)

	// StopContainer asks the container to end (SIGTERM, or what lifecycle.stopSignal
	// says) and kills it, with everything it has started, when the grace is over; with
	// no grace at once. It does not wait for the end, but the end will come even if
	// the caller dies now. A later call can shorten the grace, never extend it.
	// Stopping a container that has exited is no error.
	StopContainer(ctx context.Context, id string, grace time.Duration) error

	// RemovePod forgets a pod and deletes all that is left of it: volumes, logs,
	// records. It is an error while a container runs, and none for an unknown pod.
	RemovePod(ctx context.Context, uid types.UID) error

	// Pod says what the runtime knows of one pod, or [ErrNotFound].
	Pod(ctx context.Context, uid types.UID) (Pod, error)

	// Pods says it of all pods, in order of their UIDs.
	Pods(ctx context.Context) ([]Pod, error)

	// Watch delivers the UID of each pod that has changed since it was last delivered.
	// Changes of a pod that come faster than they are received become one. The channel
	// is closed when ctx ends; one that is closed before is a watch that failed, and the
	// caller watches again. To miss nothing, watch first and list then.
	Watch(ctx context.Context) <-chan types.UID

	// Exec runs a command inside a running container and waits for it. A command that
	// ends by itself is no error, whatever its exit code. When ctx ends the command is
	// killed and the error is that of ctx.
	Exec(ctx context.Context, id string, command []string) (ExecResult, error)

	// Logs reads what a container has written so far, and with Follow what it writes from then
	// on. The caller closes it. When ctx ends, a Read that waits returns its error.
	Logs(ctx context.Context, id string, options LogOptions) (io.ReadCloser, error)
}

var (
	// ErrNotFound is returned for a pod or container that the runtime does not know.
	ErrNotFound = errors.New("not found")
	// ErrNotRunning is returned for an Exec in a container that does not run.
	ErrNotRunning = errors.New("not running")
	// ErrTooSlow is returned by an Attach whose client did not read what the container wrote.
	ErrTooSlow = errors.New("client reads too slowly")
	// ErrContainerRunning is returned for what is not possible while a container runs.
	ErrContainerRunning = errors.New("still running")
)

// Pod is what a runtime knows of a pod.
type Pod struct {
	// Manifest is the pod as it was handed to StartPod. It is enough to end the pod
	// properly when no source knows it any more.
	Manifest *v1.Pod
	// IPs are the addresses under which the pod is reached, the first being the
	// primary one.
	IPs []string
	// CreatedAt is when StartPod was done.
	CreatedAt time.Time
	// PlaceSince is when the place of the pod began in which its next containers run.
	// It is CreatedAt until the machine restarts; from then on it is when the runtime
	// first saw the pod after that restart. A runtime whose pods end with the machine
	// may leave it zero, which means CreatedAt. It is for people: which containers
	// belong to an earlier place is [Container.EarlierPlace], which no clock decides.
	PlaceSince time.Time
	// Containers are the attempts that the runtime remembers, ordered by name, and
	// the newest attempt of a name first.
	Containers []Container
}

// Container is one attempt of one container.
type Container struct {
	// ID is unique for each start: "process://9f86d081884c7d65".
	ID string
	// Name is the container's name in the pod's spec, unique in the pod.
	Name string
	// Attempt counts the starts of this container, from 0.
	Attempt int
	State   State
	// Image is what the container was started from, in the words of the spec at that
	// time. Empty is not known, which counts as that of the spec.
	Image string
	// ImageID identifies that image whatever its name comes to mean later, as a digest
	// does. Empty is not known, which counts as Image once the container runs.
	ImageID string
	// EarlierPlace reports that the container ran in an earlier place of its pod, one
	// that ended when the machine restarted. It has exited, counts for restarts and
	// last states, and says nothing about what is set up now: init containers have to
	// run again, as in a new sandbox. A runtime that keeps pods across restarts of the
	// machine must set it, and must decide by the machine's boot ID, not by its clock.
	EarlierPlace bool

	CreatedAt time.Time
	// StartedAt is zero unless the container runs or has run.
	StartedAt time.Time
	// FinishedAt, ExitCode and Signal are set for an exited container only.
	FinishedAt time.Time
	// ExitCode is 128 plus the signal for a container that a signal ended.
	ExitCode int32
	// Signal is the signal that ended the container, or 0.
	Signal int32
	// Reason is why an exited container has ended: one of the Reason constants, or a
	// runtime's own. Of a created container it is why it does not run yet: one of the
	// Waiting constants, or a runtime's own; empty is nothing in particular.
	Reason string
	// Message is what the container or the runtime says about the end or the wait, at most
	// [MaxMessageBytes] long.
	Message string
}

// State is where a container is in its life. It only moves forward.
type State string

const (
	// Created is a container whose command was not started yet: its image is pulled, its
	// job waits in a queue. StartContainer may return then, and the container begins to run
	// by itself, or exits with [ReasonStartError].
	Created State = "Created"
	// Running is a container whose command was started and has not ended.
	Running State = "Running"
	// Exited is a container that has ended, with all that it had started.
	Exited State = "Exited"
)

// Reasons of an exited container, as the API shows them.
const (
	// ReasonCompleted is an exit with code 0.
	ReasonCompleted = "Completed"
	// ReasonError is any other exit.
	ReasonError = "Error"
	// ReasonStartError is a container whose command could not be started. Its exit
	// code is 128.
	ReasonStartError = "StartError"
	// ReasonOOMKilled is a container that the kernel killed for its memory.
	ReasonOOMKilled = "OOMKilled"
	// ReasonUnknown is a container whose end was not seen. Its exit code is 137.
	ReasonUnknown = "ContainerStatusUnknown"
)

// Exit codes that do not come from the container itself.
const (
	ExitCodeStartError = 128
	ExitCodeUnknown    = 137
)

// MaxMessageBytes bounds a termination message, as in the API.
const MaxMessageBytes = 4096

// ExecResult is how a command inside a container ended.
type ExecResult struct {
	ExitCode int
	// Output is the beginning of what the command wrote to stdout and stderr.
	Output []byte
}

// MaxExecOutputBytes bounds the output that an Exec keeps.
const MaxExecOutputBytes = 10 * 1024

// LogOptions say which part of a log to read, and how it looks. The zero value reads all of
// it as it was written.
type LogOptions struct {
	// Tail keeps that many lines at the end; nil keeps all, and 0 none. It counts lines of the
	// Stream that is asked for.
	Tail *int64
	// Since keeps what was written at that time or later; zero keeps all.
	Since time.Time
	// LimitBytes ends the log after so many bytes, wherever that is; 0 is no limit.
	LimitBytes int64
	// Stream is "stdout" or "stderr" to read only that one; empty reads both, in the order in
	// which they were written.
	Stream string
	// Timestamps puts the time of writing (RFC 3339, nanoseconds) before each line.
	Timestamps bool
	// Follow goes on with what is written later, until the container has ended and everything
	// is read. For a container that has ended it changes nothing. A runtime that cannot follow
	// returns [errors.ErrUnsupported].
	Follow bool
}

// The streams of a log.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Waiting reasons of a container that did not start, as the API shows them. A runtime gives
// them in a [StartError], or as the Reason of a container that is [Created].
const (
	// WaitingConfigError: the spec cannot be turned into something to run.
	WaitingConfigError = "CreateContainerConfigError"
	// WaitingCreateError: the runtime could not prepare the container.
	WaitingCreateError = "CreateContainerError"
	// WaitingRunError: the container was prepared, and its command did not start.
	WaitingRunError = "RunContainerError"
	// WaitingImagePull: an attempt to pull the image has failed.
	WaitingImagePull = "ErrImagePull"
	// WaitingImagePullBackOff: it has, and the next attempt is not due yet.
	WaitingImagePullBackOff = "ImagePullBackOff"
	// WaitingImageNeverPull: the image is not there, and imagePullPolicy is Never.
	WaitingImageNeverPull = "ErrImageNeverPull"
	// WaitingInvalidImageName: the image cannot be pulled by such a name.
	WaitingInvalidImageName = "InvalidImageName"
)

// StartError says why a container did not start.
type StartError struct {
	// Reason is one of the Waiting constants.
	Reason string
	Err    error
}

func (e *StartError) Error() string { return e.Err.Error() }

func (e *StartError) Unwrap() error { return e.Err }

// Reasons of events that runtimes cause, as the kubelet writes them.
const (
	// EventFailedMount: a volume could not be set up.
	EventFailedMount = "FailedMount"
	// EventInvalidVariables: keys of a config map or secret cannot be names of variables.
	EventInvalidVariables = "InvalidEnvironmentVariableNames"
)
