package cri

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/runtime"
)

// Labels and annotations that the kubelet writes, and one of this runtime.
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"

	annotationHash          = "io.kubernetes.container.hash"
	annotationRestarts      = "io.kubernetes.container.restartCount"
	annotationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	annotationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	annotationGrace         = "io.kubernetes.pod.terminationGracePeriod"
	annotationImage         = "statusd/image"      // in the words of the spec
	annotationSignal        = "statusd/stopSignal" // if the spec has one
)

// statusEvery is how often the container runtime is asked how it is.
const statusEvery = 5 * time.Second

// listTime bounds a list. A runtime that takes longer counts as one that does not answer.
const listTime = 30 * time.Second

// watch lists until ctx ends.
func (r *Runtime) watch(ctx context.Context) {
	ticker := time.NewTicker(r.options.Relist)
	defer ticker.Stop()
	looked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		bounded, cancel := context.WithTimeout(ctx, listTime)
		err := r.relist(bounded)
		if err == nil && time.Since(looked) >= statusEvery {
			looked = time.Now()
			r.look(bounded)
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			r.fail(fmt.Errorf("container runtime is down: %w", err))
		}
	}
}

// relist brings what is known up to what the container runtime lists. Containers come first: the sandbox of a container that is made
// meanwhile is in the later list.
func (r *Runtime) relist(ctx context.Context) error {
	r.mu.Lock()
	known := r.generation
	r.mu.Unlock()
	containers, err := r.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	sandboxes, err := r.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	r.takeSandboxes(ctx, sandboxes.Items)
	listed := map[string]bool{}
	for _, c := range containers.Containers {
		listed[c.Id] = true
		if err := r.take(ctx, c); err != nil && ctx.Err() != nil {
			return err
		}
	}
	r.missing(listed, known)
	return nil
}

// takeSandboxes notes the newest sandbox of each pod.
func (r *Runtime) takeSandboxes(ctx context.Context, listed []*runtimeapi.PodSandbox) {
	newest := map[types.UID]*runtimeapi.PodSandbox{}
	for _, s := range listed {
		uid := types.UID(s.GetMetadata().GetUid())
		if n := newest[uid]; n == nil || n.GetMetadata().GetAttempt() < s.GetMetadata().GetAttempt() {
			newest[uid] = s
		}
	}
	var unknown []*pod
	r.mu.Lock()
	for uid, s := range newest {
		p := r.pods[uid]
		if p == nil || p.sandbox.id != "" && s.GetMetadata().GetAttempt() < p.sandbox.attempt {
			continue
		}
		ready := s.State == runtimeapi.PodSandboxState_SANDBOX_READY
		if p.sandbox.id != s.Id && ready && len(p.ips) == 0 {
			unknown = append(unknown, p)
		}
		p.sandbox = sandbox{id: s.Id, attempt: s.GetMetadata().GetAttempt(), ready: ready}
	}
	for uid, p := range r.pods {
		if p.sandbox.id != "" && newest[uid] == nil {
			p.sandbox.ready = false
		}
	}
	r.mu.Unlock()
	for _, p := range unknown {
		if err := r.readAddresses(ctx, p); err != nil {
			r.options.Logger.Warn("reading the addresses of a pod failed", "uid", p.manifest.UID, "err", err)
		}
	}
}

// take brings one container up to what a list says of it.
func (r *Runtime) take(ctx context.Context, listed *runtimeapi.Container) error {
	uid := types.UID(listed.Labels[labelPodUID])
	r.mu.Lock()
	p := r.pods[uid]
	var c *container
	if p != nil {
		if i := slices.IndexFunc(p.containers, func(c *container) bool { return c.id == listed.Id }); i >= 0 {
			c = p.containers[i]
		}
	}
	changed := c != nil && c.view.State != stateOf(listed.State) && c.view.State != runtime.Exited
	starting := p != nil && p.creating // by StartContainer, which adds it
	r.mu.Unlock()
	switch {
	case p == nil, c == nil && starting, c != nil && !changed:
		return nil
	case c == nil && listed.State == runtimeapi.ContainerState_CONTAINER_CREATED:
		return r.discard(ctx, listed) // a start that was interrupted
	case c == nil:
		return r.takeOver(ctx, p, listed)
	}
	return r.refresh(ctx, c)
}

func (r *Runtime) discard(ctx context.Context, listed *runtimeapi.Container) error {
	r.options.Logger.Info("removing a container that was created and never started", "uid", listed.Labels[labelPodUID], "id", listed.Id)
	_, err := r.cri.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: listed.Id})
	return err
}

// takeOver adds a container that an earlier statusd has started.
func (r *Runtime) takeOver(ctx context.Context, p *pod, listed *runtimeapi.Container) error {
	response, err := r.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: listed.Id})
	if err != nil {
		return err
	}
	c := r.newContainer(p, listed.Id, listed.PodSandboxId, response.GetStatus())
	r.mu.Lock()
	r.add(p, c)
	r.mu.Unlock()
	r.apply(c, response.GetStatus())
	return nil
}

// add needs mu.
func (r *Runtime) add(p *pod, c *container) {
	r.generation++
	c.generation = r.generation
	p.containers = append(p.containers, c)
}

// newContainer is a container of which only what never changes is known.
func (r *Runtime) newContainer(p *pod, id, sandbox string, s *runtimeapi.ContainerStatus) *container {
	attempt := int(s.GetMetadata().GetAttempt())
	if n, err := strconv.Atoi(s.Annotations[annotationRestarts]); err == nil {
		attempt = n
	}
	name := s.Labels[labelContainerName]
	image := s.Annotations[annotationImage]
	if image == "" {
		image = s.GetImage().GetImage()
	}
	return &container{
		uid: p.manifest.UID, id: id, sandbox: sandbox, log: s.LogPath, dir: p.dir.attempt(name, attempt),
		fromLog: s.Annotations[annotationMessagePolicy] == "FallbackToLogsOnError",
		signal:  s.Annotations[annotationSignal],
		ended:   make(chan struct{}),
		view: runtime.Container{
			ID: r.fullID(id), Name: name, Attempt: attempt, State: runtime.Created, Image: image, ImageID: s.ImageRef, CreatedAt: instant(s.CreatedAt),
		},
	}
}

// refresh asks for the status of a container.
func (r *Runtime) refresh(ctx context.Context, c *container) error {
	response, err := r.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.id})
	if isGone(err) {
		r.vanished(c)
		return nil
	}
	if err != nil {
		return err
	}
	r.apply(c, response.GetStatus())
	return nil
}

// apply takes over a status. A container only moves forward.
func (r *Runtime) apply(c *container, s *runtimeapi.ContainerStatus) {
	next := stateOf(s.State)
	message := ""
	if next == runtime.Exited {
		message = c.message(s)
	}
	r.mu.Lock()
	before := c.view
	if c.view.State == runtime.Created && next != runtime.Created {
		c.view.State, c.view.StartedAt = runtime.Running, instant(s.StartedAt)
	}
	if next == runtime.Exited && before.State != runtime.Exited {
		c.exit(s, message)
	}
	changed := c.view != before
	r.mu.Unlock()
	if changed {
		r.Notify(c.uid)
	}
}

// exit needs Runtime.mu.
func (c *container) exit(s *runtimeapi.ContainerStatus, message string) {
	v := &c.view
	v.State, v.StartedAt, v.FinishedAt, v.ExitCode, v.Message = runtime.Exited, instant(s.StartedAt), instant(s.FinishedAt), s.ExitCode, message
	if v.FinishedAt.Before(v.StartedAt) { // both times come from different clocks of the container runtime
		v.FinishedAt = v.StartedAt
	}
	v.Reason = s.Reason
	if v.Reason == "" || v.Reason == "Unknown" {
		v.Reason = reasonOf(s.ExitCode)
	}
	if s.ExitCode > 128 && s.ExitCode <= 128+64 {
		v.Signal = s.ExitCode - 128
	}
	close(c.ended)
}

func reasonOf(code int32) string {
	if code == 0 {
		return runtime.ReasonCompleted
	}
	return runtime.ReasonError
}

// missing ends the containers that are no longer listed and were known before the list was made.
func (r *Runtime) missing(listed map[string]bool, known uint64) {
	var lost []*container
	r.mu.Lock()
	for _, p := range r.pods {
		for _, c := range p.containers {
			if !listed[c.id] && c.generation <= known && c.view.State != runtime.Exited {
				lost = append(lost, c)
			}
		}
	}
	r.mu.Unlock()
	for _, c := range lost {
		r.vanished(c)
	}
}

// vanished ends a container that the container runtime does not know any more.
func (r *Runtime) vanished(c *container) {
	r.mu.Lock()
	changed := c.view.State != runtime.Exited
	if changed {
		r.options.Logger.Warn("the container runtime no longer knows a container", "uid", c.uid, "container", c.view.Name, "id", c.id)
		c.view.State, c.view.FinishedAt = runtime.Exited, time.Now()
		c.view.ExitCode, c.view.Reason = runtime.ExitCodeUnknown, runtime.ReasonUnknown
		c.view.Message = "The container could not be located when the pod was terminated"
		close(c.ended)
	}
	r.mu.Unlock()
	if changed {
		r.Notify(c.uid)
	}
}

// stateOf maps the states of CRI. A container of which the container runtime does not know the state could run.
func stateOf(s runtimeapi.ContainerState) runtime.State {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return runtime.Created
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return runtime.Exited
	}
	return runtime.Running
}

// instant reads a time of CRI, of which 0 means never.
func instant(nanoseconds int64) time.Time {
	if nanoseconds <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

// logDir has the logs of a pod.
func (r *Runtime) logDir(m *v1.Pod) string {
	return filepath.Join(r.options.LogDir, fmt.Sprintf("%s_%s_%s", m.Namespace, m.Name, m.UID))
}
