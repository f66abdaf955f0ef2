package worker

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/runtime"
)

// supported leaves out the starts of containers that the runtime cannot run. Such a container waits with the
// reason, as with the kubelet, and is tried again; the pod is not rejected, because a controller would
// replace it at once.
func (p *worker) supported(s *observation, starts []start, now time.Time) []start {
	var found []runtime.Unsupported
	checked := false
	var left []start
	for _, todo := range starts {
		if !wasRun(s, todo.container) {
			if !checked {
				found, checked = p.w.opts.Runtime.Check(s.pod), true
			}
			if refusal := runtime.Refusal(found, todo.container.Name); refusal != nil {
				p.failedStart(s.pod, todo, "", refusal, now)
				continue
			}
		}
		left = append(left, todo)
	}
	return left
}

// wasRun reports whether the runtime has run the container from the same image. The runtime can
// then run it again, even if its settings have changed since.
func wasRun(s *observation, c *v1.Container) bool {
	newest := attemptsOf(s.found.Containers, c.Name).newest()
	return newest != nil && (newest.Image == "" || newest.Image == c.Image)
}

// retry is when a start that left nothing behind is tried again.
type retry struct {
	due   time.Time
	tries int    // that have failed with the image
	image string // another one is tried at once
}

// pullRetries are the pauses between tries to get an image, as with the kubelet.
var pullRetries = backoff.Schedule{First: 10 * time.Second, Limit: 5 * time.Minute}

// retryStart notes when the container is tried again, and why it waits until then.
func (p *worker) retryStart(c *v1.Container, why v1.ContainerStateWaiting, now time.Time) {
	next := retry{image: c.Image, tries: 1, due: now.Add(startRetry)}
	if last := p.retries[c.Name]; last.image == c.Image {
		next.tries += last.tries
	}
	if why.Reason == runtime.WaitingImagePull {
		next.due = now.Add(pullRetries.Wait(next.tries, 0))
		if next.tries > 1 {
			why = v1.ContainerStateWaiting{
				Reason:  runtime.WaitingImagePullBackOff,
				Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", c.Image, why.Reason, why.Message),
			}
		}
	}
	p.retries[c.Name], p.waiting[c.Name] = next, why
}

// dueRetries are the retries of containers whose image has not been edited since.
func (p *worker) dueRetries(pod *v1.Pod) map[string]time.Time {
	dues := map[string]time.Time{}
	for name, retry := range p.retries {
		if c := specOf(pod, name); c != nil && c.Image == retry.image {
			dues[name] = retry.due
		}
	}
	return dues
}
