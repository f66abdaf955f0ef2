package cri

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/runtime"
)

const (
	// waitingInspect: the container runtime cannot say whether it has the image.
	waitingInspect = "ImageInspectError"
	// waitingRegistry: the registry cannot be reached.
	waitingRegistry = "RegistryUnavailable"

	eventPulling = "Pulling"
	eventPulled  = "Pulled"
	eventFailed  = "Failed"
	eventNever   = "ErrImageNeverPull"
)

// imageName is what a reference to an image looks like: [HOST[:PORT]/]PATH[:TAG][@DIGEST].
var imageName = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*(:[\w][\w.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)

// tagged is the reference with its tag, or with the default tag.
func tagged(image string) (string, error) {
	parts := imageName.FindStringSubmatch(image)
	if parts == nil || len(image) > 512 {
		return "", fmt.Errorf("couldn't parse image name %q: invalid reference format", image)
	}
	if parts[1] == "" && parts[2] == "" {
		image += ":latest"
	}
	return image, nil
}

// ensureImage returns the image of a container. It begins a pull if its policy says so, and returns [runtime.ErrPulling] until the pull is over.
func (r *Runtime) ensureImage(ctx context.Context, p *pod, manifest *v1.Pod, spec *v1.Container) (*runtimeapi.Image, error) {
	event := func(kind, reason, format string, args ...any) {
		r.options.Event(manifest, spec.Name, kind, reason, fmt.Sprintf(format, args...))
	}
	name, err := tagged(spec.Image)
	if err != nil {
		return nil, waits(runtime.WaitingInvalidImageName, "Failed to apply default image tag %q: %w", spec.Image, err)
	}
	pulled, err := r.pulled(p, spec.Name, name)
	if errors.Is(err, runtime.ErrPulling) {
		return nil, err
	}
	if err != nil {
		event(v1.EventTypeWarning, eventFailed, "Failed to pull image %q: %v", spec.Image, err)
		reason := runtime.WaitingImagePull
		if strings.Contains(err.Error(), waitingRegistry) {
			reason = waitingRegistry
		}
		return nil, &runtime.StartError{Reason: reason, Err: err}
	}
	found, err := r.image(ctx, name)
	if err != nil {
		return nil, waits(waitingInspect, "Failed to inspect image %q: %w", spec.Image, err)
	}
	if found != nil {
		r.images.use(found.Id, time.Now())
	}
	policy := pullPolicy(spec.ImagePullPolicy, name)
	if found != nil && pulled == nil && policy != v1.PullAlways && !r.mayUse(ctx, p, manifest, name, found) {
		found = nil // whether the image is there is not for this pod to know
	}
	switch {
	case found != nil && pulled != nil:
		event(v1.EventTypeNormal, eventPulled, "Successfully pulled image %q in %s. Image size: %d bytes.", spec.Image, pulled.took.Round(time.Millisecond), found.Size)
		return found, nil
	case pulled != nil:
		return nil, waits(waitingInspect, "Failed to inspect image %q after its pull: %w", spec.Image, errors.New("the container runtime does not have it"))
	case found != nil && policy != v1.PullAlways:
		event(v1.EventTypeNormal, eventPulled, "Container image %q already present on machine", spec.Image)
		return found, nil
	case policy == v1.PullNever:
		event(v1.EventTypeWarning, eventNever, "Container image %q is not present with pull policy of Never", spec.Image)
		return nil, waits(runtime.WaitingImageNeverPull, "Container image %q is not present with pull policy of Never", spec.Image)
	}
	event(v1.EventTypeNormal, eventPulling, "Pulling image %q", spec.Image)
	r.beginPull(p, manifest, spec.Name, name)
	return nil, runtime.ErrPulling
}

// pull is a pull for a container. It goes on while the worker of the pod does other work.
type pull struct {
	image  string
	cancel context.CancelFunc
	over   bool // guarded by Runtime.mu, as is what follows
	err    error
	took   time.Duration
}

// pulled returns the pull of the image for the container that is over, which is then forgotten, nil if there was none, or [runtime.ErrPulling]. A pull
// for an image that the container no longer has ends.
func (r *Runtime) pulled(p *pod, container, image string) (*pull, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := p.pulls[container]
	switch {
	case l == nil:
		return nil, nil
	case l.image != image:
		l.cancel()
	case !l.over:
		return nil, runtime.ErrPulling
	}
	delete(p.pulls, container)
	if l.image != image {
		return nil, nil
	}
	return l, l.err
}

// beginPull pulls an image and then has StartContainer called again.
func (r *Runtime) beginPull(p *pod, manifest *v1.Pod, container, image string) {
	ctx, cancel := context.WithCancel(r.life)
	l := &pull{image: image, cancel: cancel}
	r.mu.Lock()
	if p.pulls == nil {
		p.pulls = map[string]*pull{}
	}
	p.pulls[container] = l
	r.mu.Unlock()
	r.pulling.Go(func() {
		defer cancel()
		began := time.Now()
		err := r.pull(ctx, p, manifest, image)
		r.mu.Lock()
		l.over, l.err, l.took = true, err, time.Since(began)
		r.mu.Unlock()
		if ctx.Err() == nil {
			r.Notify(manifest.UID)
		}
	})
}

// endPulls ends the pulls of a pod that has ended.
func (r *Runtime) endPulls(p *pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range p.pulls {
		l.cancel()
	}
	clear(p.pulls)
}

// waits is the reason and the message, in the kubelet's words, of a container that does not start.
func waits(reason, format string, args ...any) *runtime.StartError {
	return &runtime.StartError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// pullPolicy returns the container's policy, or the default of the API.
func pullPolicy(policy v1.PullPolicy, name string) v1.PullPolicy {
	switch {
	case policy != "":
		return policy
	case strings.HasSuffix(name, ":latest"):
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}

// image is what the container runtime has under a name, nil if nothing.
func (r *Runtime) image(ctx context.Context, name string) (*runtimeapi.Image, error) {
	bounded, cancel := r.ask(ctx)
	defer cancel()
	response, err := r.cri.images.ImageStatus(bounded, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
	if err != nil {
		return nil, err
	}
	return response.GetImage(), nil
}

// mayUse reports whether a pod may use an image that is there. A pod that has used the image before needs no credentials again, which may not be readable
// while the API server is down.
func (r *Runtime) mayUse(ctx context.Context, p *pod, manifest *v1.Pod, name string, image *runtimeapi.Image) bool {
	names := slices.Concat([]string{image.Id}, image.RepoTags, image.RepoDigests)
	r.mu.Lock()
	used := slices.ContainsFunc(p.containers, func(c *container) bool { return slices.Contains(names, c.view.ImageID) })
	r.mu.Unlock()
	return used || r.records.allows(name, image, func() (secrets []pullSecret) {
		for _, c := range r.credentials(ctx, manifest, name) {
			secrets = append(secrets, c.from)
		}
		return secrets
	})
}

// pull pulls an image with each of the credentials that the pod has for its registry, and without any if it has none, and notes whose were right.
func (r *Runtime) pull(ctx context.Context, p *pod, manifest *v1.Pod, name string) error {
	r.mu.Lock()
	attempt := p.sandbox.attempt
	r.mu.Unlock()
	config, err := r.sandboxConfig(p, attempt)
	if err != nil {
		return err
	}
	if err := r.records.begin(name); err != nil {
		return fmt.Errorf("note the pull: %w", err)
	}
	credentials := r.credentials(ctx, manifest, name)
	if len(credentials) == 0 {
		credentials = []credential{{}}
	}
	for _, c := range credentials {
		if _, err = r.cri.images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: name}, Auth: c.auth, SandboxConfig: config}); err == nil {
			return r.notePulled(ctx, name, &c.from)
		}
	}
	return errors.Join(err, r.records.end(name, true))
}

// notePulled notes the end of a pull, and whose credentials were right; nil: not known. If that fails, the next start of statusd tries again.
func (r *Runtime) notePulled(ctx context.Context, name string, by *pullSecret) error {
	image, err := r.image(context.WithoutCancel(ctx), name)
	if err == nil && image != nil {
		err = r.records.record(name, image.Id, by)
	}
	if err != nil {
		r.options.Logger.Error("who pulled an image cannot be noted, will retry after a restart", "image", name, "err", err)
	}
	return r.records.end(name, err == nil)
}

// loadPullRecords reads who pulled images. An image that was being pulled when the last statusd ended counts as pulled with unknown credentials, if it is
// there: the pull ended with its client, or just before.
func (r *Runtime) loadPullRecords() error {
	records, interrupted, err := openPullRecords(filepath.Join(r.options.Dir, "images"), r.options.writeRecord)
	if err != nil {
		return err
	}
	r.records = records
	for _, name := range interrupted {
		image, err := r.image(r.life, name)
		if err == nil && image != nil {
			err = records.record(name, image.Id, nil)
		}
		if err == nil {
			err = records.end(name, true)
		}
		if err != nil {
			return fmt.Errorf("image %s, whose pull was interrupted: %w", name, err)
		}
	}
	return nil
}
