package cri

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
)

// StartPod implements [runtime.Runtime]: volumes first, then the record, then the sandbox with its network. A pod with a record is known from
// then on, so that a sandbox that is made too late to be heard of is found, and removed with the pod.
func (r *Runtime) StartPod(ctx context.Context, manifest *v1.Pod) error {
	if err := checkUID(manifest.UID); err != nil {
		return err
	}
	r.mu.Lock()
	p := r.pods[manifest.UID]
	r.mu.Unlock()
	if p == nil {
		var err error
		if p, err = r.prepare(ctx, manifest); err != nil {
			return fmt.Errorf("cri: start pod %s: %w", manifest.UID, err)
		}
	} else if p.released {
		if err := r.prepareAgain(ctx, p); err != nil {
			return fmt.Errorf("cri: start pod %s again: %w", manifest.UID, err)
		}
	}
	if err := r.ensureSandbox(ctx, p); err != nil {
		return fmt.Errorf("cri: start pod %s: %w", manifest.UID, err)
	}
	return nil
}

// prepare makes the directory, the volumes and the record of a pod.
func (r *Runtime) prepare(ctx context.Context, manifest *v1.Pod) (*pod, error) {
	now := time.Now()
	p := &pod{dir: r.podDir(manifest.UID), manifest: manifest.DeepCopy(), createdAt: now, placeSince: now}
	contents, err := r.makeVolumes(ctx, p)
	if err == nil {
		err = r.save(p)
	}
	if err != nil {
		return nil, errors.Join(err, removeTree(string(p.dir)))
	}
	r.mu.Lock()
	r.pods[manifest.UID] = p
	r.mu.Unlock()
	r.keeper.Add(manifest.UID, contents)
	return p, nil
}

// remakeVolumes restores volumes in memory after a reboot. Their contents are written before a container can find them empty.
func (r *Runtime) remakeVolumes(ctx context.Context, p *pod) error {
	if !p.lacksMemory() {
		return nil
	}
	_, err := r.makeVolumes(ctx, p)
	return err
}

// prepareAgain makes the volumes of a pod that was taken for ended.
func (r *Runtime) prepareAgain(ctx context.Context, p *pod) error {
	contents, err := r.makeVolumes(ctx, p)
	if err != nil {
		return err
	}
	r.keeper.Add(p.manifest.UID, contents)
	r.mu.Lock()
	p.released = false
	r.mu.Unlock()
	return r.save(p)
}

// ensureSandbox creates a sandbox unless the pod has a ready one. Containers that still run in an earlier sandbox are stopped: its network
// is no longer the pod's network.
func (r *Runtime) ensureSandbox(ctx context.Context, p *pod) error {
	r.mu.Lock()
	present := p.sandbox
	var stale []*container
	if !present.ready {
		for _, c := range p.containers {
			if c.view.State != runtime.Exited {
				stale = append(stale, c)
			}
		}
	}
	r.mu.Unlock()
	if present.ready {
		return nil
	}
	for _, c := range stale {
		r.stop(c, time.Now().Add(graceOf(p.manifest)), true)
	}
	if len(stale) > 0 {
		return errors.New("the sandbox of the pod has ended, and containers of it still run")
	}
	attempt := present.attempt
	if present.id != "" {
		attempt++
		if err := r.stopSandbox(ctx, present.id); err != nil { // also releases its network
			return err
		}
		if err := r.remakeVolumes(ctx, p); err != nil {
			return err
		}
	}
	return r.makeSandbox(ctx, p, attempt)
}

// graceOf is how long the containers of a pod may take to end.
func graceOf(pod *v1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return v1.DefaultTerminationGracePeriodSeconds * time.Second
}

func (r *Runtime) makeSandbox(ctx context.Context, p *pod, attempt uint32) error {
	handler, err := r.handler(ctx, p.manifest)
	if err != nil {
		return err
	}
	if err := r.assignUsers(p, handler); err != nil {
		return err
	}
	if err := os.MkdirAll(r.logDir(p.manifest), 0o755); err != nil {
		return err
	}
	if err := r.groups.makePod(r.allocated(p), r.options.Allocatable(), r.active); err != nil {
		return err
	}
	config, err := r.sandboxConfig(p, attempt)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, sandboxTime)
	defer cancel()
	response, err := r.cri.RunPodSandbox(bounded, &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	if err != nil {
		if isUnheard(err) {
			r.mu.Lock()
			p.unheard = true
			r.mu.Unlock()
		}
		return err
	}
	r.mu.Lock()
	r.generation++
	p.sandbox = sandbox{id: response.PodSandboxId, attempt: attempt, ready: true, generation: r.generation}
	if attempt > 0 {
		p.placeSince = time.Now()
	}
	r.mu.Unlock()
	if err := r.readAddresses(bounded, p); err != nil {
		return err
	}
	r.Notify(p.manifest.UID)
	return nil
}

// readAddresses asks for the addresses of the pod's sandbox and remembers them.
func (r *Runtime) readAddresses(ctx context.Context, p *pod) error {
	r.mu.Lock()
	id := p.sandbox.id
	r.mu.Unlock()
	response, err := r.cri.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil {
		return err
	}
	var ips []string
	network := response.GetStatus().GetNetwork()
	if network.GetIp() != "" {
		ips = append(ips, network.GetIp())
	}
	for _, more := range network.GetAdditionalIps() {
		ips = append(ips, more.GetIp())
	}
	r.mu.Lock()
	p.ips, p.addressed = ips, id
	r.mu.Unlock()
	return r.save(p)
}

func (r *Runtime) stopSandbox(ctx context.Context, id string) error {
	bounded, cancel := r.ask(ctx)
	defer cancel()
	_, err := r.cri.StopPodSandbox(bounded, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	if isGone(err) {
		return nil
	}
	return err
}

// handler is what a runtime class names in the configuration of the container runtime.
func (r *Runtime) handler(ctx context.Context, pod *v1.Pod) (string, error) {
	name := pod.Spec.RuntimeClassName
	if name == nil || *name == "" {
		return "", nil
	}
	if r.options.Client == nil {
		return "", fmt.Errorf("failed to get RuntimeClass %s: there is no API server", *name)
	}
	class, err := r.options.Client.NodeV1().RuntimeClasses().Get(ctx, *name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("failed to get RuntimeClass %s: %w", *name, err)
	}
	return class.Handler, nil
}

// sandboxConfig is that of a pod's sandbox. It is made again for each container, since CRI asks for it.
func (r *Runtime) sandboxConfig(p *pod, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	pod := p.manifest
	dns, err := r.dns(pod)
	if err != nil {
		return nil, err
	}
	hostname, _ := r.hostname(pod)
	if len(hostname) > maxHostname {
		return nil, fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)", hostname, maxHostname, len(hostname))
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt},
		Hostname:     hostname,
		LogDirectory: r.logDir(pod),
		DnsConfig:    dns,
		Labels:       podLabels(pod),
		Annotations:  maps.Clone(pod.Annotations),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    r.groups.parentOf(pod),
			SecurityContext: sandboxSecurity(pod),
			Sysctls:         sysctls(pod),
			Resources:       podResources(pod),
		},
	}
	config.Linux.SecurityContext.NamespaceOptions.UsernsOptions = p.users()
	if pod.Spec.HostNetwork {
		config.Hostname = "" // the node's
	} else {
		config.PortMappings = portMappings(pod)
	}
	return config, nil
}

func podLabels(pod *v1.Pod) map[string]string {
	labels := maps.Clone(pod.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelPodName], labels[labelPodNamespace], labels[labelPodUID] = pod.Name, pod.Namespace, string(pod.UID)
	return labels
}

// portMappings are the ports of the node that lead to the pod.
func portMappings(pod *v1.Pod) (all []*runtimeapi.PortMapping) {
	for _, container := range eachContainer(pod) {
		for _, port := range container.Ports {
			if port.HostPort == 0 {
				continue
			}
			protocol := runtimeapi.Protocol_TCP
			switch port.Protocol {
			case v1.ProtocolUDP:
				protocol = runtimeapi.Protocol_UDP
			case v1.ProtocolSCTP:
				protocol = runtimeapi.Protocol_SCTP
			}
			all = append(all, &runtimeapi.PortMapping{Protocol: protocol, ContainerPort: port.ContainerPort, HostPort: port.HostPort, HostIp: port.HostIP})
		}
	}
	return all
}

// eachContainer are the init and regular containers of a pod.
func eachContainer(pod *v1.Pod) (all []*v1.Container) {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

func sysctls(pod *v1.Pod) map[string]string {
	all := map[string]string{}
	if pod.Spec.SecurityContext != nil {
		for _, s := range pod.Spec.SecurityContext.Sysctls {
			all[dotted(s.Name)] = s.Value
		}
	}
	return all
}

// dotted is a sysctl in the form that container runtimes take: the first separator of a name decides which of the two stands for the other.
func dotted(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

// keepAdopted keeps the contents of the pods up to date that an earlier statusd has started.
func (r *Runtime) keepAdopted() {
	if r.options.Objects == nil {
		return
	}
	r.mu.Lock()
	var adopted []*pod
	for _, p := range r.pods {
		if podvolume.HasContents(p.manifest) && !p.released {
			adopted = append(adopted, p)
		}
	}
	r.mu.Unlock()
	for _, p := range adopted {
		contents := r.contents(p)
		contents.Poke()
		r.keeper.Add(p.manifest.UID, contents)
		r.mu.Lock()
		listed := r.pods[p.manifest.UID] == p
		r.mu.Unlock()
		if !listed { // removed meanwhile
			r.keeper.Remove(p.manifest.UID)
		}
	}
}
