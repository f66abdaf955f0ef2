package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/dump"

	"github.com/statusd/statusd/runtime"
)

// keptAttempts is how many attempts of a container are remembered: the current one and the one before, which the pod's status shows as last state.
const keptAttempts = 2

// StartContainer implements [runtime.Runtime].
func (r *Runtime) StartContainer(ctx context.Context, manifest *v1.Pod, spec *v1.Container, attempt int) (string, error) {
	p, err := r.mayStart(manifest, spec.Name, attempt)
	if err != nil {
		return "", fmt.Errorf("cri: start container %s: %w", spec.Name, err)
	}
	defer r.startOver(p)
	if err := r.ensureSandbox(ctx, p); err != nil {
		return "", &runtime.StartError{Reason: runtime.WaitingCreateError, Err: err}
	}
	image, err := r.ensureImage(ctx, p, manifest, spec)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("cri: start container %s: %w", spec.Name, err)
	}
	ctx = context.WithoutCancel(ctx) // a cancellation from here on would leave a half-made container
	c, err := r.create(ctx, p, manifest, spec, attempt, image)
	if err != nil {
		return "", err
	}
	if err := r.launch(ctx, c); err != nil {
		return c.view.ID, err
	}
	r.prune(ctx, p, spec.Name)
	return c.view.ID, nil
}

// mayStart makes sure that there is a place for the container and that nothing runs in it.
func (r *Runtime) mayStart(manifest *v1.Pod, name string, attempt int) (*pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.pods[manifest.UID]
	if !known {
		return nil, fmt.Errorf("pod %s: %w", manifest.UID, runtime.ErrNotFound)
	}
	for _, c := range p.containers {
		if c.view.Name != name {
			continue
		}
		if c.view.State != runtime.Exited {
			return nil, fmt.Errorf("attempt %d: %w", c.view.Attempt, runtime.ErrContainerRunning)
		}
		if c.view.Attempt >= attempt {
			return nil, fmt.Errorf("attempt %d was already made, attempt %d comes too late", c.view.Attempt, attempt)
		}
	}
	p.creating = true
	return p, nil
}

func (r *Runtime) startOver(p *pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.creating = false
}

// create makes the container, which is then listed.
func (r *Runtime) create(ctx context.Context, p *pod, manifest *v1.Pod, spec *v1.Container, attempt int, image *runtimeapi.Image) (*container, error) {
	r.mu.Lock()
	box := p.sandbox
	r.mu.Unlock()
	dir := p.dir.attempt(spec.Name, attempt)
	config, err := r.containerConfig(ctx, p, manifest, spec, attempt, image)
	if err != nil {
		return nil, &runtime.StartError{Reason: runtime.WaitingConfigError, Err: err}
	}
	sandboxConfig, err := r.sandboxConfig(p, box.attempt)
	if err != nil {
		return nil, &runtime.StartError{Reason: runtime.WaitingConfigError, Err: err}
	}
	if config.Linux.SecurityContext.Privileged { // as an ephemeral container, which the pod had not when it was started
		sandboxConfig.Linux.SecurityContext.Privileged = true
	}
	if err := r.reallocate(p, spec.Name, &spec.Resources, func() error { return nil }); err != nil { // a resize may need a restart
		return nil, &runtime.StartError{Reason: runtime.WaitingCreateError, Err: err}
	}
	bounded, cancel := r.ask(ctx)
	defer cancel()
	response, err := r.cri.CreateContainer(bounded, &runtimeapi.CreateContainerRequest{PodSandboxId: box.id, Config: config, SandboxConfig: sandboxConfig})
	if err != nil {
		return nil, &runtime.StartError{Reason: runtime.WaitingCreateError, Err: err}
	}
	c := r.newContainer(p, response.ContainerId, box.id, &runtimeapi.ContainerStatus{
		Metadata: config.Metadata, Labels: config.Labels, Annotations: config.Annotations, ImageRef: image.Id, CreatedAt: time.Now().UnixNano(),
		LogPath: filepath.Join(sandboxConfig.LogDirectory, config.LogPath),
	})
	c.dir = dir
	if status, err := r.cri.ContainerStatus(bounded, &runtimeapi.ContainerStatusRequest{ContainerId: c.id}); err == nil {
		c.view.CreatedAt, c.view.ImageID = instant(status.GetStatus().GetCreatedAt()), status.GetStatus().GetImageRef()
	}
	r.mu.Lock()
	r.add(p, c)
	r.mu.Unlock()
	r.link(c)
	r.Notify(c.uid)
	return c, nil
}

// launch starts a created container. A failed start is an end, unless the container runs all the same, for example after a timeout. While the container
// runtime does not report which, the container keeps its state: another attempt beside a running one would be a second copy.
func (r *Runtime) launch(ctx context.Context, c *container) error {
	bounded, cancel := r.ask(ctx)
	defer cancel()
	_, startErr := r.cri.StartContainer(bounded, &runtimeapi.StartContainerRequest{ContainerId: c.id})
	if startErr != nil {
		r.mu.Lock()
		c.startErr = startErr
		r.mu.Unlock()
	}
	fresh, cancelFresh := r.ask(ctx) // the start may have used up its time
	defer cancelFresh()
	err := r.refresh(fresh, c)
	switch {
	case err != nil: // the next list brings it
		r.options.Logger.Warn("the status of a container that was started cannot be read", "uid", c.uid, "id", c.id, "err", err)
		return nil
	case startErr == nil:
		return nil
	}
	if r.failStart(c) {
		return &runtime.StartError{Reason: runtime.WaitingRunError, Err: startErr}
	}
	return nil
}

// failStart ends a container that was created and not started, and reports whether it never ran.
func (r *Runtime) failStart(c *container) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.view.State == runtime.Created {
		c.view.State, c.view.FinishedAt, c.view.ExitCode = runtime.Exited, time.Now(), runtime.ExitCodeStartError
		c.view.Reason, c.view.Message = runtime.ReasonStartError, cut(c.startErr.Error())
		close(c.ended)
		r.Notify(c.uid)
	}
	return c.view.State == runtime.Exited && c.view.StartedAt.IsZero()
}

// prune removes the attempts of a container that are not needed any more.
func (r *Runtime) prune(ctx context.Context, p *pod, name string) {
	r.mu.Lock()
	var attempts []*container
	for _, c := range p.containers {
		if c.view.Name == name {
			attempts = append(attempts, c)
		}
	}
	slices.SortFunc(attempts, func(a, b *container) int { return b.view.Attempt - a.view.Attempt })
	old := attempts[min(keptAttempts, len(attempts)):]
	r.mu.Unlock()
	for _, c := range old {
		if err := r.removeContainer(ctx, c); err != nil {
			r.options.Logger.Warn("removing an old attempt failed", "uid", c.uid, "id", c.id, "err", err)
			continue // again after the next start
		}
		r.mu.Lock()
		p.containers = slices.DeleteFunc(p.containers, func(other *container) bool { return other == c })
		r.mu.Unlock()
	}
}

// removeContainer removes a container with its log and its files.
func (r *Runtime) removeContainer(ctx context.Context, c *container) error {
	bounded, cancel := r.ask(ctx)
	defer cancel()
	_, err := r.cri.RemoveContainer(bounded, &runtimeapi.RemoveContainerRequest{ContainerId: c.id})
	if err != nil && !isGone(err) {
		return err
	}
	return errors.Join(unlink(c.link), removeLog(c.log), os.RemoveAll(c.dir))
}

// removeLog removes all files of a log.
func removeLog(log string) error {
	if log == "" {
		return nil
	}
	files, err := filepath.Glob(log + "*")
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// containerConfig turns a container's spec into that of CRI.
func (r *Runtime) containerConfig(ctx context.Context, p *pod, manifest *v1.Pod, spec *v1.Container, attempt int, image *runtimeapi.Image) (*runtimeapi.ContainerConfig, error) {
	security, err := containerSecurity(manifest, spec, image)
	if err != nil {
		return nil, err
	}
	security.NamespaceOptions.UsernsOptions = p.users()
	if err := r.aimAt(security, p, manifest, spec.Name); err != nil {
		return nil, err
	}
	env, err := r.environment(ctx, p, manifest, spec)
	if err != nil {
		return nil, err
	}
	dir := p.dir.attempt(spec.Name, attempt)
	if err := makeTerminationLog(dir); err != nil {
		return nil, err
	}
	if err := r.writeHosts(p); err != nil {
		return nil, err
	}
	mounts, err := r.mounts(p, manifest, spec, env, dir)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.ContainerConfig{
		Metadata:   &runtimeapi.ContainerMetadata{Name: spec.Name, Attempt: uint32(attempt)},
		Image:      &runtimeapi.ImageSpec{Image: image.Id, UserSpecifiedImage: spec.Image},
		Command:    expandAll(spec.Command, env),
		Args:       expandAll(spec.Args, env),
		WorkingDir: spec.WorkingDir,
		Mounts:     mounts,
		Labels: map[string]string{
			labelPodName: manifest.Name, labelPodNamespace: manifest.Namespace, labelPodUID: string(manifest.UID), labelContainerName: spec.Name,
		},
		Annotations: containerAnnotations(manifest, spec, attempt),
		LogPath:     filepath.Join(spec.Name, strconv.Itoa(attempt)+".log"),
		Stdin:       spec.Stdin, StdinOnce: spec.StdinOnce, Tty: spec.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{Resources: r.groups.withUnified(manifest, containerResources(manifest, spec)), SecurityContext: security},
	}
	if l := spec.Lifecycle; l != nil && l.StopSignal != nil {
		config.Annotations[annotationSignal] = string(*l.StopSignal)
		config.StopSignal = runtimeapi.Signal(runtimeapi.Signal_value[string(*l.StopSignal)])
	}
	for _, v := range env {
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(v.Value)})
	}
	return config, os.MkdirAll(filepath.Join(r.logDir(manifest), spec.Name), 0o755)
}

func containerAnnotations(pod *v1.Pod, spec *v1.Container, attempt int) map[string]string {
	return map[string]string{
		annotationHash:          containerHash(spec),
		annotationRestarts:      strconv.Itoa(attempt),
		annotationMessagePath:   spec.TerminationMessagePath,
		annotationMessagePolicy: string(spec.TerminationMessagePolicy),
		annotationGrace:         strconv.FormatInt(int64(graceOf(pod)/time.Second), 10),
		annotationImage:         spec.Image,
	}
}

// containerHash is the hash by which a kubelet detects an edited name or image. A kubelet that takes over the container restarts it if the hash differs.
func containerHash(spec *v1.Container) string {
	text, err := json.Marshal(map[string]string{"name": spec.Name, "image": spec.Image})
	if err != nil {
		return "" // two strings have a form as JSON
	}
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%v", dump.ForHash(text))
	return strconv.FormatUint(uint64(hash.Sum32()), 16)
}

func expandAll(words []string, env []v1.EnvVar) (all []string) {
	for _, word := range words {
		all = append(all, runtime.Expand(word, lookupIn(env)))
	}
	return all
}

func lookupIn(env []v1.EnvVar) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := range env {
			if env[i].Name == name {
				return env[i].Value, true
			}
		}
		return "", false
	}
}

// aimAt makes the processes of its target container visible to an ephemeral container.
func (r *Runtime) aimAt(security *runtimeapi.LinuxContainerSecurityContext, p *pod, manifest *v1.Pod, name string) error {
	for i := range manifest.Spec.EphemeralContainers {
		e := &manifest.Spec.EphemeralContainers[i]
		if e.Name != name || e.TargetContainerName == "" || manifest.Spec.HostPID || isTrue(manifest.Spec.ShareProcessNamespace) {
			continue
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range p.containers {
			if c.view.Name == e.TargetContainerName && c.view.State == runtime.Running {
				security.NamespaceOptions.Pid, security.NamespaceOptions.TargetId = runtimeapi.NamespaceMode_TARGET, c.id
				return nil
			}
		}
		return fmt.Errorf("target container %q is not running", e.TargetContainerName)
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }
