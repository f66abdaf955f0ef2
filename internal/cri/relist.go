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

	"github.com/statusd/statusd/podstatus"
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

// statusEvery is the interval of status requests to the container runtime.
const statusEvery = 5 * time.Second

// listTime bounds a list. A slower runtime counts as not answering.
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
			looked = time.Time{} // when it answers again the node says so at once
			r.down(err)
		}
	}
}

// relist updates all pods from the container runtime's lists. Containers are listed first: the sandbox of a container created
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
	r.takeSandboxes(ctx, sandboxes.Items, known)
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

// takeSandboxes records the newest sandbox of each pod. A sandbox created after the list began may be missing in it.
func (r *Runtime) takeSandboxes(ctx context.Context, listed []*runtimeapi.PodSandbox, known uint64) {
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
		if p == nil || p.sandbox.generation > known || p.sandbox.id != "" && s.GetMetadata().GetAttempt() < p.sandbox.attempt {
			continue
		}
		ready := s.State == runtimeapi.PodSandboxState_SANDBOX_READY
		if p.addressed != s.Id && ready { // statusd was killed, or lost the answer, before it knew the sandbox
			unknown = append(unknown, p)
		}
		p.sandbox = sandbox{id: s.Id, attempt: s.GetMetadata().GetAttempt(), ready: ready}
	}
	for uid, p := range r.pods {
		if p.sandbox.id != "" && p.sandbox.generation <= known && newest[uid] == nil {
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

// take updates one container from a list.
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
	startFailed := c != nil && c.startErr != nil && !changed
	over := startFailed && c.view.State == runtime.Exited
	starting := p != nil && p.creating // by StartContainer, which adds it
	r.mu.Unlock()
	switch {
	case startFailed && listed.State == runtimeapi.ContainerState_CONTAINER_CREATED:
		r.failStart(c)
		return nil
	case over && listed.State == runtimeapi.ContainerState_CONTAINER_RUNNING: // it runs after its start was given up
		_, err := r.cri.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: c.id})
		return err
	case c != nil && listed.State == runtimeapi.ContainerState_CONTAINER_UNKNOWN:
		r.endUnknown(p, c)
		return nil
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
	status, err := r.statusOf(ctx, listed.Id)
	if err != nil {
		return err
	}
	c := r.newContainer(p, listed.Id, listed.PodSandboxId, status)
	r.mu.Lock()
	r.add(p, c)
	r.mu.Unlock()
	r.link(c)
	r.apply(c, status)
	return nil
}

// statusOf asks for the status of a container. An answer without one is an error.
func (r *Runtime) statusOf(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	response, err := r.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err == nil && response.GetStatus() == nil {
		err = fmt.Errorf("status of container %s: the container runtime has answered without a status", id)
	}
	return response.GetStatus(), err
}

// endUnknown stops a container that the container runtime has lost, as the kubelet does: it may run, and its end would not be reported.
func (r *Runtime) endUnknown(p *pod, c *container) {
	r.mu.Lock()
	over := c.view.State == runtime.Exited
	r.mu.Unlock()
	if !over {
		r.stop(c, time.Now().Add(graceOf(p.manifest)), true)
	}
}

// add needs mu.
func (r *Runtime) add(p *pod, c *container) {
	r.generation++
	c.generation = r.generation
	p.containers = append(p.containers, c)
}

// newContainer makes a container with its immutable facts only.
func (r *Runtime) newContainer(p *pod, id, sandbox string, s *runtimeapi.ContainerStatus) *container {
	attempt := int(s.GetMetadata().GetAttempt())
	if n, err := strconv.Atoi(s.Annotations[annotationRestarts]); err == nil {
		attempt = n
	}
	name := s.Labels[labelContainerName]
	messageFile := ""
	for _, m := range s.Mounts {
		if m.ContainerPath == s.Annotations[annotationMessagePath] {
			messageFile = m.HostPath // that of a kubelet, if the pod was taken over from one
		}
	}
	return &container{
		messageFile: messageFile,
		uid:         p.manifest.UID, id: id, sandbox: sandbox, log: s.LogPath, link: r.logLink(p.manifest, name, id), dir: p.dir.attempt(name, attempt),
		fromLog: s.Annotations[annotationMessagePolicy] == "FallbackToLogsOnError",
		signal:  s.Annotations[annotationSignal],
		ended:   make(chan struct{}),
		view: runtime.Container{
			ID: r.fullID(id), Name: name, Attempt: attempt, State: runtime.Created, Image: p.imageOf(name, s), ImageID: s.ImageRef, CreatedAt: instant(s.CreatedAt),
		},
	}
}

// imageOf is the image of a container as the spec names it; container runtimes change the name. A container of a kubelet has a hash of its
// image name.
func (p *pod) imageOf(name string, s *runtimeapi.ContainerStatus) string {
	if image := s.Annotations[annotationImage]; image != "" {
		return image
	}
	if spec := podstatus.FindContainer(p.manifest, name); spec != nil && containerHash(spec) == s.Annotations[annotationHash] {
		return spec.Image
	}
	return s.GetImage().GetImage()
}

// refresh asks for the status of a container.
func (r *Runtime) refresh(ctx context.Context, c *container) error {
	status, err := r.statusOf(ctx, c.id)
	if isGone(err) {
		r.vanished(c)
		return nil
	}
	if err != nil {
		return err
	}
	r.apply(c, status)
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
	if v.Reason == "" {
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

// vanished ends a container that the container runtime does not know any more. If the runtime has lost its state the processes may run on: they are
// killed first, since another container will take the place of this one.
func (r *Runtime) vanished(c *container) {
	if p, err := r.place(c.uid); err == nil {
		if err := r.groups.killContainer(p.manifest, c.id); err != nil {
			r.options.Logger.Warn("killing what is left of a container that the container runtime no longer knows failed, will retry", "uid", c.uid, "id", c.id, "err", err)
			return
		}
	}
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

// stateOf maps the states of CRI. A container in the unknown state could run.
func stateOf(s runtimeapi.ContainerState) runtime.State {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return runtime.Created
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return runtime.Exited
	}
	return runtime.Running
}

// instant converts a time of CRI; 0 means never.
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
