package runtime

import (
	"context"
	"errors"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Runtime runs pods. See the package comment for the contract of implementations.
type Runtime interface {
	// Version names the runtime as the node's status shows it: "process://v1.2.0". Container IDs
	// start with the same name and "://".
	Version() string

	// Check returns the fields of the pod that this runtime cannot honor: see [Refusal]. If it returns nil, the pod may be started.
	// Check is called again before each retry of a start. Check reads the spec only and has no side effects.
	Check(pod *v1.Pod) []Unsupported

	// StartPod creates the sandbox of the pod's containers: volumes, network, addresses. If the pod
	// has a sandbox, StartPod does nothing, unless the machine has restarted since: then StartPod
	// recreates what the restart has removed.
	StartPod(ctx context.Context, pod *v1.Pod) error

	// StartContainer starts one attempt of a container of a started pod and returns its ID, which
	// is unique for each start. Attempts of a container count from 0 and only grow. StartContainer
	// fails while an earlier attempt still runs.
	//
	// StartContainer may return while the container is [Created] and starts by itself, as after a long pull.
	// Or it returns [ErrPulling] while the image is pulled: the pod's other containers are looked after meanwhile, later
	// ones are not started, and StartContainer is called again when Watch delivers the pod. RemoveVolumes and RemovePod end the pull.
	// ctx ends when the pod must end: a runtime should cancel a pull then, and should list a container that
	// exists already rather than leave it half created.
	//
	// If the container did not start, the error is a [*StartError]. The ID is not empty if the
	// attempt is listed anyway, exited with reason [ReasonStartError].
	StartContainer(ctx context.Context, pod *v1.Pod, container *v1.Container, attempt int) (id string, err error)

	// StopContainer sends the stop signal to the container (SIGTERM, or lifecycle.stopSignal) and
	// kills it, with all its processes, after the grace period; without a grace period,
	// immediately. StopContainer does not wait for the end, but the container ends even if the
	// caller dies now. A later call can shorten the grace period, never extend it. Stopping an
	// exited container is not an error.
	StopContainer(ctx context.Context, id string, grace time.Duration) error

	// RemovePod removes a pod with its volumes, logs and records. RemovePod fails while a container
	// runs, and returns nil for an unknown pod.
	RemovePod(ctx context.Context, uid types.UID) error

	// Pod returns the state of one pod, or [ErrNotFound].
	Pod(ctx context.Context, uid types.UID) (Pod, error)

	// Pods returns the state of all pods, in order of their UIDs.
	Pods(ctx context.Context) ([]Pod, error)

	// Watch delivers the UID of each pod that has changed since the UID was last delivered. Changes
	// of a pod that come faster than they are received are merged. The channel is closed when ctx
	// ends; if it is closed before, the watch has failed, and the caller watches again. Watch first
	// and then list, otherwise changes are missed.
	Watch(ctx context.Context) <-chan types.UID

	// Exec runs a command inside a running container and waits for it. The end of the command is
	// not an error, whatever its exit code. When ctx ends, the command is killed and Exec returns
	// the error of ctx.
	Exec(ctx context.Context, id string, command []string) (ExecResult, error)

	// Logs reads the output of a container so far, and with Follow its later output. The caller
	// closes the reader. When ctx ends, a blocked Read returns the error of ctx.
	Logs(ctx context.Context, id string, options LogOptions) (io.ReadCloser, error)
}

var (
	// ErrNotFound is returned for an unknown pod or container.
	ErrNotFound = errors.New("not found")
	// ErrNotRunning is returned by Exec for a container that does not run.
	ErrNotRunning = errors.New("not running")
	// ErrTooSlow is returned by Attach if the client does not read the output of the container.
	ErrTooSlow = errors.New("client reads too slowly")
	// ErrPulling is returned by StartContainer while the image of the container is pulled.
	ErrPulling = errors.New("image is being pulled")
	// ErrContainerRunning is returned by methods that fail while a container runs.
	ErrContainerRunning = errors.New("still running")
)

// Pod is the state of a pod in a runtime.
type Pod struct {
	// Manifest is the pod that was passed to StartPod. It suffices to end the pod properly when no
	// source has the pod any more.
	Manifest *v1.Pod
	// IPs are the addresses of the pod, the primary address first.
	IPs []string
	// CreatedAt is when StartPod was done.
	CreatedAt time.Time
	// PlaceSince is when the current sandbox of the pod was created. It equals CreatedAt until the
	// machine restarts; after a restart it is when the runtime first listed the pod again. A
	// runtime whose pods end with the machine may leave it zero, which means CreatedAt. PlaceSince
	// is for display: [Container.EarlierPlace] decides which containers belong to an earlier
	// sandbox, independently of clocks.
	PlaceSince time.Time
	// NoPlace reports that the pod has no sandbox with a network now: StartPod has failed, or the sandbox has ended.
	NoPlace bool
	// Containers are the recorded attempts, ordered by name, the newest attempt of a name first.
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
	// Image is the image that the container was started from, as in the spec at that time. Empty
	// means unknown; the image in the current spec is assumed then.
	Image string
	// ImageID identifies the image independently of its name, for example by digest. Empty means
	// unknown; Image is used instead once the container runs.
	ImageID string
	// EarlierPlace reports that the container ran in an earlier sandbox of its pod, which ended
	// when the machine restarted. Such a container has exited and counts for restarts and last
	// states, but init containers must run again, as in a new sandbox. A runtime that keeps pods
	// across restarts of the machine must set EarlierPlace, by the machine's boot ID and not by its
	// clock.
	EarlierPlace bool

	CreatedAt time.Time
	// StartedAt is zero unless the container runs or has run.
	StartedAt time.Time
	// FinishedAt, ExitCode and Signal are set for an exited container only.
	FinishedAt time.Time
	// ExitCode is 128 plus the signal for a container that was ended by a signal.
	ExitCode int32
	// Signal is the signal that ended the container, or 0.
	Signal int32
	// Reason is why an exited container has ended: one of the Reason constants, or a reason of the
	// runtime. For a created container, Reason is why the container does not run yet: one of the
	// Waiting constants, a reason of the runtime, or empty.
	Reason string
	// Message describes the end or the wait, at most [MaxMessageBytes] long.
	Message string
}

// State is the state of a container. It only moves forward.
type State string

const (
	// Created is a container whose command was not started yet: its image is being pulled, its job
	// waits in a queue. StartContainer may return in this state; the container later runs by
	// itself, or exits with [ReasonStartError].
	Created State = "Created"
	// Running is a container whose command was started and has not ended.
	Running State = "Running"
	// Exited is a container that has ended, with all its processes.
	Exited State = "Exited"
)

// Reasons of an exited container, as in the API.
const (
	// ReasonCompleted is an exit with code 0.
	ReasonCompleted = "Completed"
	// ReasonError is any other exit.
	ReasonError = "Error"
	// ReasonStartError is a container whose command could not be started. Its exit
	// code is 128.
	ReasonStartError = "StartError"
	// ReasonOOMKilled is a container that the kernel's OOM killer has killed.
	ReasonOOMKilled = "OOMKilled"
	// ReasonUnknown is a container whose end was not observed. Its exit code is 137.
	ReasonUnknown = "ContainerStatusUnknown"
)

// Exit codes that do not come from the container itself.
const (
	ExitCodeStartError = 128
	ExitCodeUnknown    = 137
)

// MaxMessageBytes bounds a termination message, as in the API.
const MaxMessageBytes = 4096

// ExecResult is the result of a command in a container.
type ExecResult struct {
	ExitCode int
	// Output is the beginning of the output of the command, stdout and stderr.
	Output []byte
}

// MaxExecOutputBytes bounds the output that an Exec keeps.
const MaxExecOutputBytes = 10 * 1024

// LogOptions select the part of a log to read and its format. The zero value reads the whole log as
// written.
type LogOptions struct {
	// Tail is the number of lines at the end to read; nil means all, and 0 none. Only lines of
	// Stream count.
	Tail *int64
	// Since selects lines written at that time or later; zero means all.
	Since time.Time
	// LimitBytes cuts the log after this number of bytes, even within a line; 0 means no limit.
	LimitBytes int64
	// Stream is "stdout" or "stderr" to read only that stream; empty reads both, in the order of
	// writing.
	Stream string
	// Timestamps puts the time of writing (RFC 3339, nanoseconds) before each line.
	Timestamps bool
	// Follow continues with later output, until the container has ended and everything is read. For
	// an ended container, Follow has no effect. A runtime that cannot follow returns
	// [errors.ErrUnsupported].
	Follow bool
}

// The streams of a log.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Waiting reasons of a container that did not start, as in the API. A runtime returns them in a
// [StartError], or as the Reason of a container that is [Created].
const (
	// WaitingConfigError: the container's configuration is invalid or refers to missing objects.
	WaitingConfigError = "CreateContainerConfigError"
	// WaitingCreateError: the runtime could not prepare the container.
	WaitingCreateError = "CreateContainerError"
	// WaitingRunError: the container was prepared, but its command did not start.
	WaitingRunError = "RunContainerError"
	// WaitingImagePull: pulling the image has failed.
	WaitingImagePull = "ErrImagePull"
	// WaitingImagePullBackOff: pulling the image has failed, and the next attempt is not due yet.
	WaitingImagePullBackOff = "ImagePullBackOff"
	// WaitingImageNeverPull: the image is missing, and imagePullPolicy is Never.
	WaitingImageNeverPull = "ErrImageNeverPull"
	// WaitingInvalidImageName: the name of the image is invalid.
	WaitingInvalidImageName = "InvalidImageName"
)

// StartError is the error of a container that did not start.
type StartError struct {
	// Reason is one of the Waiting constants.
	Reason string
	Err    error
}

func (e *StartError) Error() string { return e.Err.Error() }

func (e *StartError) Unwrap() error { return e.Err }

// Reasons of events that runtimes cause, as in the kubelet.
const (
	// EventFailedMount: a volume could not be set up.
	EventFailedMount = "FailedMount"
	// EventInvalidVariables: keys of a config map or secret are not valid names of variables.
	EventInvalidVariables = "InvalidEnvironmentVariableNames"
)
