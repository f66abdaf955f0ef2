package kubeletapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/statusd/statusd/runtime"
)

// serveLogs serves /containerLogs/NAMESPACE/POD/CONTAINER.
func (s *Server) serveLogs(w http.ResponseWriter, request *http.Request, parameters []string) {
	namespace, name, container := parameters[0], parameters[1], parameters[2]
	wanted, err := decodeLogOptions(request.URL.Query())
	if err != nil {
		answer(w, http.StatusBadRequest, `{"message": "Unable to decode query."}`)
		return
	}
	if !validLogOptions(wanted) {
		answer(w, http.StatusUnprocessableEntity, `{"message": "Invalid request."}`)
		return
	}
	pod, ok := s.options.Pods.ByName(namespace, name)
	if !ok {
		answer(w, http.StatusNotFound, fmt.Sprintf("pod %q does not exist", name))
		return
	}
	if specOf(pod, container) == nil {
		answer(w, http.StatusNotFound, fmt.Sprintf("container %q not found in pod %q", container, name))
		return
	}
	log, err := s.openLog(request.Context(), pod, container, wanted)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	defer log.Close()
	w.Header().Set("Content-Type", "text/plain")
	out := newFlushed(w)
	if _, err := out.Write(nil); err != nil { // the client sees that it is connected before there is a line
		return
	}
	_, err = io.Copy(out, log)
	if errors.Is(context.Cause(request.Context()), errStopping) {
		panic(http.ErrAbortHandler) // there may be more: the client must not take this for the end of the log
	}
	if err != nil && request.Context().Err() == nil {
		s.log.Debug("log ended early", "pod", namespace+"/"+name, "container", container, "err", err)
		if !errors.Is(err, errClientGone) {
			fmt.Fprintf(out, "%v\n", err)
		}
	}
}

// openLog opens the log of a container.
func (s *Server) openLog(ctx context.Context, pod *v1.Pod, container string, wanted v1.PodLogOptions) (io.ReadCloser, error) {
	if c := s.options.Containers; c != nil && c.Logs == nil {
		return nil, fmt.Errorf("read logs: %w", ErrNotSupported)
	} else if c != nil {
		return c.Logs(ctx, pod, container, wanted)
	}
	id, err := loggedContainer(pod.Name, &pod.Status, container, wanted.Previous)
	if err != nil {
		return nil, err
	}
	log, err := s.options.Runtime.Logs(ctx, id, logOptions(wanted, time.Now()))
	if err != nil {
		return nil, errors.New(logError(err, id))
	}
	return log, nil
}

// logError is what the client reads: the log of a container that was removed is a common case.
func logError(err error, id string) string {
	if errors.Is(err, runtime.ErrNotFound) {
		return fmt.Sprintf("unable to retrieve container logs for %s", id)
	}
	return err.Error()
}

// specOf returns the container of any kind with this name, or nil.
func specOf(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return (*v1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		}
	}
	return nil
}

// loggedContainer is the ID of the attempt of a container whose log is shown.
func loggedContainer(pod string, status *v1.PodStatus, container string, previous bool) (string, error) {
	found := statusOf(status, container)
	if found == nil {
		return "", fmt.Errorf("container %q in pod %q is not available", container, pod)
	}
	last := found.LastTerminationState.Terminated
	lastID := ""
	if last != nil {
		lastID = last.ContainerID
	}
	state := found.State
	switch {
	case previous:
		if lastID == "" {
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", container, pod)
		}
		return lastID, nil
	case state.Running != nil:
		return found.ContainerID, nil
	case state.Terminated != nil && state.Terminated.ContainerID != "":
		return state.Terminated.ContainerID, nil
	case lastID != "": // the attempt after it has not started
		return lastID, nil
	case state.Terminated != nil, last != nil:
		return "", fmt.Errorf("container %q in pod %q is terminated", container, pod)
	case state.Waiting != nil:
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod, waitsFor(state.Waiting.Reason))
	}
	return "", fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", container, pod)
}

func waitsFor(reason string) string {
	switch reason {
	case runtime.WaitingImagePull:
		return "image can't be pulled"
	case runtime.WaitingImagePullBackOff:
		return "trying and failing to pull image"
	}
	return reason
}

func statusOf(status *v1.PodStatus, container string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// decodeLogOptions reads a query as the API does. The older parameter tail stands for tailLines.
func decodeLogOptions(query url.Values) (options v1.PodLogOptions, err error) {
	if tail := query.Get("tail"); tail != "" {
		query["tailLines"] = []string{tail}
		if tail == "all" {
			query.Del("tailLines")
		}
	}
	decode := func(key string, into func(*[]string) error) {
		if values, ok := query[key]; ok && len(values) > 0 {
			err = errors.Join(err, into(&values))
		}
	}
	flag := func(to *bool) func(*[]string) error {
		return func(values *[]string) error { return apiruntime.Convert_Slice_string_To_bool(values, to, nil) }
	}
	number := func(to **int64) func(*[]string) error {
		return func(values *[]string) error {
			return apiruntime.Convert_Slice_string_To_Pointer_int64(values, to, nil)
		}
	}
	decode("follow", flag(&options.Follow))
	decode("previous", flag(&options.Previous))
	decode("timestamps", flag(&options.Timestamps))
	decode("tailLines", number(&options.TailLines))
	decode("limitBytes", number(&options.LimitBytes))
	decode("sinceSeconds", number(&options.SinceSeconds))
	decode("sinceTime", func(values *[]string) error {
		return metav1.Convert_Slice_string_To_Pointer_v1_Time(values, &options.SinceTime, nil)
	})
	decode("stream", func(values *[]string) error { options.Stream = &(*values)[0]; return nil })
	return options, err
}

func validLogOptions(o v1.PodLogOptions) bool {
	switch {
	case o.TailLines != nil && *o.TailLines < 0,
		o.LimitBytes != nil && *o.LimitBytes < 1,
		o.SinceSeconds != nil && (o.SinceTime != nil || *o.SinceSeconds < 1):
		return false
	case o.Stream == nil || *o.Stream == v1.LogStreamAll:
		return true
	}
	return (*o.Stream == v1.LogStreamStdout || *o.Stream == v1.LogStreamStderr) && o.TailLines == nil
}

// logOptions are the runtime's options for a log.
func logOptions(o v1.PodLogOptions, now time.Time) runtime.LogOptions {
	options := runtime.LogOptions{Tail: o.TailLines, Timestamps: o.Timestamps, Follow: o.Follow}
	if o.LimitBytes != nil {
		options.LimitBytes = *o.LimitBytes
	}
	if o.SinceTime != nil {
		options.Since = o.SinceTime.Time
	}
	if o.SinceSeconds != nil {
		options.Since = now.Add(-time.Duration(min(*o.SinceSeconds, maxSinceSeconds)) * time.Second)
	}
	if o.Stream != nil {
		switch *o.Stream {
		case v1.LogStreamStdout:
			options.Stream = runtime.Stdout
		case v1.LogStreamStderr:
			options.Stream = runtime.Stderr
		}
	}
	return options
}

// maxSinceSeconds is longer than any log, and a duration can hold it.
const maxSinceSeconds = 100 * 365 * 24 * 3600

var errClientGone = errors.New("client gone")

// flushed sends each write at once. A client that takes nothing for writeTimeout is gone.
type flushed struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

// writeTimeout is the idle timeout of streams on the kubelet: a pager may rest on a page for long.
const writeTimeout = 4 * time.Hour

func newFlushed(w http.ResponseWriter) flushed {
	return flushed{w, http.NewResponseController(w)}
}

func (f flushed) Write(content []byte) (int, error) {
	// Not each writer has deadlines, as in tests.
	_ = f.controller.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := f.w.Write(content)
	if err == nil {
		err = f.controller.Flush()
	}
	if err != nil {
		return n, fmt.Errorf("%w: %w", errClientGone, err)
	}
	return n, nil
}
