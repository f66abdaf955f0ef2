package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/httpget"
	"github.com/statusd/statusd/internal/text"
)

// maxHookBody bounds how much of the answer to an httpGet hook is read.
const maxHookBody = 10 * 1024

// hookCall is one run of a hook of a running container.
type hookCall struct {
	pod       types.UID
	id        string
	container *v1.Container
	handler   *v1.LifecycleHandler

	// fellBack is the host that answered an HTTPS request with plain HTTP and took the
	// retry without TLS; empty if there was none.
	fellBack string
}

// hookKey names a hook of a container: postStart, or else preStop.
type hookKey struct {
	id   string
	post bool
}

// hookEnd is the result of a hook.
type hookEnd struct {
	hookKey
	container string
	fellBack  string // see hookCall
	err       error
}

// run runs the hook until it is done or ctx ends.
func (w *Workers) run(ctx context.Context, call *hookCall) error {
	switch h := call.handler; {
	case h.Exec != nil:
		return w.execHook(ctx, call)
	case h.HTTPGet != nil:
		return w.httpHook(ctx, call)
	case h.Sleep != nil:
		return sleepHook(ctx, seconds(h.Sleep.Seconds))
	case h.TCPSocket != nil:
		return errors.New("tcpSocket is not supported as a lifecycle hook by Kubernetes; use exec, httpGet or sleep")
	}
	return errors.New("the hook has no action; set exec, httpGet or sleep")
}

func (w *Workers) execHook(ctx context.Context, call *hookCall) error {
	result, err := w.opts.Runtime.Exec(ctx, call.id, call.handler.Exec.Command)
	if err != nil {
		return fmt.Errorf("exec %q: %w", call.handler.Exec.Command, err)
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("exec %q exited with %d: %q", call.handler.Exec.Command, result.ExitCode, result.Output)
	}
	return nil
}

func sleepHook(ctx context.Context, d time.Duration) error {
	if !backoff.Sleep(ctx, d) {
		return ctx.Err()
	}
	return nil
}

// httpHook sends one request, and any answer is a success, as with the kubelet. Also as with the
// kubelet, the request is repeated without TLS if a server answers HTTPS with plain HTTP, and
// without the credentials that were meant for TLS.
func (w *Workers) httpHook(ctx context.Context, call *hookCall) error {
	request, err := w.hookRequest(ctx, call)
	if err != nil {
		return fmt.Errorf("httpGet hook: %w", err)
	}
	err = w.get(request)
	if errors.Is(err, http.ErrSchemeMismatch) {
		request = request.Clone(ctx)
		request.URL.Scheme = "http"
		request.Header.Del("Authorization")
		if retryErr := w.get(request); retryErr == nil {
			call.fellBack = request.URL.Host
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("httpGet hook: %w", err)
	}
	return nil
}

func (w *Workers) get(request *http.Request) error {
	response, err := w.opts.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// The answer is not used. It is read so that the server can write it.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxHookBody))
	return nil
}

func (w *Workers) hookRequest(ctx context.Context, call *hookCall) (*http.Request, error) {
	action := call.handler.HTTPGet
	podIP := ""
	if action.Host == "" {
		pod, err := w.opts.Runtime.Pod(ctx, call.pod)
		if err != nil {
			return nil, fmt.Errorf("address of the pod: %w", err)
		}
		ips := slices.Concat(pod.IPs, w.opts.HostIPs()) // a pod without an address serves at the node's address
		if len(ips) == 0 {
			return nil, errors.New("the pod has no address; set host")
		}
		podIP = ips[0]
	}
	return httpget.NewRequest(ctx, action, call.container, podIP, httpget.UserAgent("lifecycle", w.opts.Version))
}

// newHookClient makes the client for httpGet hooks.
func newHookClient() *http.Client {
	return &http.Client{Transport: httpget.NewTransport(nil), CheckRedirect: httpget.StayOnHost}
}

// runHook runs a hook in a goroutine of its own; its end comes back through the inbox.
func (p *worker) runHook(ctx context.Context, pod *v1.Pod, key hookKey, call *hookCall) {
	call.pod, call.id = p.uid, key.id
	p.hookBegins(pod, key, call.container.Name)
	live := ctx
	ctx, cancel := context.WithCancel(ctx)
	p.cancels[key] = cancel
	p.hooks.Go(func() {
		defer cancel()
		err := p.w.run(ctx, call)
		if err != nil && live.Err() != nil {
			return // cut off by the end of this process, which says nothing about the container
		}
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		p.inbox.ended = append(p.inbox.ended, hookEnd{hookKey: key, container: call.container.Name, fellBack: call.fellBack, err: err})
		p.poke()
	})
}

// settle takes note of the hooks that have ended. A container whose postStart hook has
// failed is stopped.
func (p *worker) handleHookEnds(pod *v1.Pod, ended []hookEnd, now time.Time) {
	for _, hook := range ended {
		delete(p.cancels, hook.hookKey)
		p.w.count.hook(hook.post, hook.err)
		p.hookEnded(pod, &hook, now)
		if hook.fellBack != "" {
			p.event(pod, hook.container, v1.EventTypeWarning, eventHTTPFallback,
				fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", hook.fellBack))
		}
		switch {
		case !hook.post:
			p.handlePreStopEnd(pod, hook)
		case p.runningPostStart != hook.id: // abandoned
		case hook.err != nil:
			p.runningPostStart = ""
			p.waiting[hook.container] = v1.ContainerStateWaiting{Reason: reasonPostStartHook, Message: hook.err.Error()}
			p.event(pod, hook.container, v1.EventTypeWarning, eventPostStart, hookMessage("PostStartHook failed", hook.err))
			p.stop(pod, hook.container, hook.id, now.Add(podGrace(pod)), false, "FailedPostStartHook")
			stop := p.stops[hook.id]
			stop.postStartFailed = true
			p.stops[hook.id] = stop
		default:
			p.runningPostStart = ""
		}
	}
}

// hookMessage is the message of an event about a hook that failed. A kubelet leaves out why, which for a container that is stopped for
// its hook again and again no other field of the API has for more than a moment.
func hookMessage(what string, err error) string { return what + ": " + text.Ends(err.Error(), 512) }

func (p *worker) handlePreStopEnd(pod *v1.Pod, hook hookEnd) {
	stop, begun := p.stops[hook.id]
	if !begun || stop.hook == hookOver {
		return // the container has ended, or the hook has taken too long
	}
	if hook.err != nil {
		p.log.Error("preStop hook failed", "container", hook.container, "err", hook.err)
		p.event(pod, hook.container, v1.EventTypeWarning, eventPreStop, hookMessage("PreStopHook failed", hook.err))
	}
	stop.hook = hookOver
	p.stops[hook.id] = stop
}

// abandonPostStart ends a postStart hook that a pod that ends has no use for.
func (p *worker) abandonPostStart() {
	if cancel, runs := p.cancels[hookKey{id: p.runningPostStart, post: true}]; runs {
		cancel()
	}
	p.runningPostStart = ""
}
