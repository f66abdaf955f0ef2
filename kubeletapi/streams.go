package kubeletapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/exec"

	"github.com/statusd/statusd/runtime"
)

const (
	// streamIdle is how long nothing may pass through streams before they are closed.
	streamIdle = 4 * time.Hour
	// maxRunOutput bounds the output of /run.
	maxRunOutput = 16 << 20
)

var errNoStreams = errors.New("this runtime cannot connect clients to containers")

// target is what a path below /exec, /attach or /run names: NAMESPACE/POD[/UID]/CONTAINER.
type target struct {
	namespace, pod string
	uid            types.UID // empty: any
	container      string
}

func targetOf(parameters []string) target {
	t := target{namespace: parameters[0], pod: parameters[1], container: parameters[len(parameters)-1]}
	if len(parameters) == 4 {
		t.uid = types.UID(parameters[2])
	}
	return t
}

// running finds the running attempt of a container. The UID may be the UID of the pod or of its
// mirror pod.
func (s *Server) running(ctx context.Context, pod *v1.Pod, t target) (id string, ok bool, err error) {
	if t.uid != "" && s.options.Pods.TranslateUID(t.uid) != pod.UID {
		return "", false, nil
	}
	found, err := s.options.Runtime.Pod(ctx, pod.UID)
	if errors.Is(err, runtime.ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	for _, c := range found.Containers {
		if c.Name == t.container && c.State == runtime.Running {
			return c.ID, true, nil
		}
	}
	return "", false, nil
}

// asked is what a request for a command is about. If the pod is nil the request was answered: it is wrong, or there is no such pod.
func (s *Server) asked(w http.ResponseWriter, request *http.Request, parameters []string) (*remotecommand.Options, target, *v1.Pod) {
	t := targetOf(parameters)
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return nil, t, nil
	}
	pod, ok := s.options.Pods.ByName(t.namespace, t.pod)
	if !ok {
		answer(w, http.StatusNotFound, "pod does not exist")
		return nil, t, nil
	}
	return options, t, pod
}

func (s *Server) serveExec(w http.ResponseWriter, request *http.Request, parameters []string) {
	options, t, pod := s.asked(w, request, parameters)
	if pod == nil {
		return
	}
	command := request.URL.Query()["command"]
	if len(command) == 0 {
		answer(w, http.StatusBadRequest, "you must specify a command")
		return
	}
	id, ok, err := s.running(request.Context(), pod, t)
	if err == nil && !ok {
		err = fmt.Errorf("container not found (%q)", t.container)
	}
	streamer := s.streamer(w, err)
	if streamer == nil {
		return
	}
	s.stream(w, request, func(w http.ResponseWriter, request *http.Request) {
		serveCommand(w, request, &executor{streamer: streamer, id: id, options: *options, command: command})
	})
}

// streamer returns what can stream. It answers a request that has failed, or that the runtime cannot serve, and returns nil.
func (s *Server) streamer(w http.ResponseWriter, err error) runtime.Streamer {
	streamer, can := s.options.Runtime.(runtime.Streamer)
	if err == nil && !can {
		err = errNoStreams
	}
	if err != nil {
		answer(w, http.StatusInternalServerError, err.Error())
		return nil
	}
	return streamer
}

func (s *Server) serveAttach(w http.ResponseWriter, request *http.Request, parameters []string) {
	options, t, pod := s.asked(w, request, parameters)
	if pod == nil {
		return
	}
	if t.uid != "" && s.options.Pods.TranslateUID(t.uid) != pod.UID {
		answer(w, http.StatusInternalServerError, fmt.Sprintf("pod %s_%s not found", t.pod, t.namespace))
		return
	}
	id, ok, err := s.running(request.Context(), pod, t)
	spec := specOf(pod, t.container)
	if err == nil && (!ok || spec == nil) {
		err = fmt.Errorf("container %s not found in pod %s_%s", t.container, t.pod, t.namespace)
	}
	streamer := s.streamer(w, err)
	if streamer == nil {
		return
	}
	s.stream(w, request, func(w http.ResponseWriter, request *http.Request) {
		serveCommand(w, request, &executor{streamer: streamer, id: id, options: *options, attach: true, tty: spec.TTY})
	})
}

func (s *Server) servePortForward(w http.ResponseWriter, request *http.Request, parameters []string) {
	options, err := portforward.NewV4Options(request)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	pod, ok := s.options.Pods.ByName(parameters[0], parameters[1])
	if !ok {
		answer(w, http.StatusNotFound, "pod does not exist")
		return
	}
	if len(parameters) == 3 && s.options.Pods.TranslateUID(types.UID(parameters[2])) != pod.UID {
		answer(w, http.StatusNotFound, "pod not found")
		return
	}
	streamer, can := s.options.Runtime.(runtime.Streamer)
	if !can {
		answer(w, http.StatusInternalServerError, errNoStreams.Error())
		return
	}
	if found, err := s.options.Runtime.Pod(request.Context(), pod.UID); err != nil || runningPod(found) == nil {
		answer(w, http.StatusInternalServerError, fmt.Sprintf("pod not found (%q)", pod.Name+"_"+pod.Namespace))
		return
	}
	s.stream(w, request, func(w http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithCancel(request.Context())
		forwarder := &forwarder{ctx: ctx, streamer: streamer, uid: pod.UID}
		defer forwarder.calls.finish()
		defer cancel()
		portforward.ServePortForward(w, request, forwarder, pod.Name, string(pod.UID), options,
			streamIdle, streamsTimeout, portforward.SupportedProtocols)
	})
}

// serveRun runs a command without streams and answers with what it wrote.
func (s *Server) serveRun(w http.ResponseWriter, request *http.Request, parameters []string) {
	t := targetOf(parameters)
	pod, ok := s.options.Pods.ByName(t.namespace, t.pod)
	if !ok {
		answer(w, http.StatusNotFound, "pod does not exist")
		return
	}
	id, ok, err := s.running(request.Context(), pod, t)
	if err == nil && !ok {
		err = fmt.Errorf("container not found (%q)", t.container)
	}
	if err != nil {
		answer(w, http.StatusInternalServerError, err.Error())
		return
	}
	command := strings.Split(request.FormValue("cmd"), " ")
	output, code, err := s.run(request.Context(), id, command)
	if err == nil && code != 0 {
		err = fmt.Errorf("command '%s' exited with %d: %s", strings.Join(command, " "), code, output)
	}
	if err != nil {
		answer(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json") // as the kubelet says, whatever it is
	_, _ = w.Write(output)                             // the client may have gone
}

func (s *Server) run(ctx context.Context, id string, command []string) ([]byte, int, error) {
	streamer, can := s.options.Runtime.(runtime.Streamer)
	if !can {
		result, err := s.options.Runtime.Exec(ctx, id, command)
		return result.Output, result.ExitCode, err
	}
	output := &bounded{left: maxRunOutput}
	code, err := streamer.ExecStream(ctx, id, command, runtime.Streams{Stdout: output, Stderr: output})
	return output.kept.Bytes(), code, err
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	mu   sync.Mutex // guards what follows
	kept bytes.Buffer
	left int
}

func (b *bounded) Write(content []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := content[:min(len(content), b.left)]
	b.left -= len(kept)
	b.kept.Write(kept)
	return len(content), nil
}

// stream serves a request whose connection becomes one of streams. What was started for the client ends with
// the connection.
func (s *Server) stream(w http.ResponseWriter, request *http.Request, serve func(http.ResponseWriter, *http.Request)) {
	if !httpstream.IsUpgradeRequest(request) {
		http.Error(w, "Upgrade request required", http.StatusInternalServerError)
		return
	}
	ctx, cancel := context.WithCancel(request.Context())
	taken := &takenOver{ResponseWriter: w, gone: cancel}
	defer cancel()
	defer taken.close()
	serve(taken, request.WithContext(ctx))
}

// executor connects the streams of one client to a container.
type executor struct {
	streamer runtime.Streamer
	id       string
	options  remotecommand.Options // which streams the client has
	command  []string
	attach   bool // to the container itself, which has a terminal if tty
	tty      bool
}

// ExecInContainer implements [remotecommand.Executor]. An exit code is an error there.
func (e *executor) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, err io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	code, failure := e.streamer.ExecStream(ctx, e.id, command, e.streams(ctx, in, out, err, tty, resize))
	if failure != nil {
		return whyEnded(ctx, failure)
	}
	if code != 0 {
		return exec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
	}
	return nil
}

// AttachContainer implements [remotecommand.Attacher]. Whether there is a terminal was decided when the container
// started.
func (e *executor) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, err io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return whyEnded(ctx, e.streamer.Attach(ctx, e.id, e.streams(ctx, in, out, err, e.tty, resize)))
}

// whyEnded is why streams have ended: by themselves, or because the server stops.
func whyEnded(ctx context.Context, failure error) error {
	if errors.Is(context.Cause(ctx), errStopping) {
		return fmt.Errorf("ended by the node: %w", errStopping)
	}
	return failure
}

// streams returns the streams that the client has requested. Other streams may be present and not
// nil.
func (e *executor) streams(ctx context.Context, in io.Reader, out, err io.Writer, tty bool, resize <-chan remotecommand.TerminalSize) runtime.Streams {
	streams := runtime.Streams{TTY: tty}
	if e.options.Stdin {
		streams.Stdin = in
	}
	if e.options.Stdout {
		streams.Stdout = out
	}
	if e.options.Stderr && !tty {
		streams.Stderr = err
	}
	if tty && resize != nil {
		streams.Resize = sizes(ctx, resize)
	}
	return streams
}

// sizes passes sizes on until ctx or the client's ends.
func sizes(ctx context.Context, from <-chan remotecommand.TerminalSize) <-chan runtime.TerminalSize {
	to := make(chan runtime.TerminalSize)
	go func() {
		defer close(to)
		for {
			select {
			case <-ctx.Done():
				return
			case size, ok := <-from:
				if !ok {
					return
				}
				select {
				case to <- runtime.TerminalSize{Width: size.Width, Height: size.Height}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return to
}
