package cri

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// Numbers of the kernel's interface, as the kubelet uses them.
const (
	cpuPeriod   = 100_000 // microseconds
	minQuota    = 1_000
	minShares   = 2
	maxShares   = 1 << 18
	oomCritical = -997
)

// containerResources are the limits of a container.
func containerResources(pod *v1.Pod, c *v1.Container) *runtimeapi.LinuxContainerResources {
	resources := limitsOf(&c.Resources)
	resources.OomScoreAdj = oomScore(pod, c)
	return resources
}

func limitsOf(r *v1.ResourceRequirements) *runtimeapi.LinuxContainerResources {
	request := r.Requests.Cpu().MilliValue()
	if _, asked := r.Requests[v1.ResourceCPU]; !asked {
		request = r.Limits.Cpu().MilliValue()
	}
	resources := &runtimeapi.LinuxContainerResources{
		CpuShares:          min(maxShares, max(minShares, request*1024/1000)),
		CpuPeriod:          cpuPeriod,
		MemoryLimitInBytes: r.Limits.Memory().Value(),
	}
	if limit := r.Limits.Cpu().MilliValue(); limit > 0 {
		resources.CpuQuota = max(minQuota, limit*cpuPeriod/1000)
	}
	for name, quantity := range r.Limits {
		if size, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix); ok {
			resources.HugepageLimits = append(resources.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: size + "B", Limit: uint64(quantity.Value())})
		}
	}
	return resources
}

// podResources are for a runtime whose sandboxes are machines, which must be large enough.
func podResources(pod *v1.Pod) *runtimeapi.LinuxContainerResources {
	l := podLimits(pod)
	resources := &runtimeapi.LinuxContainerResources{CpuPeriod: cpuPeriod, CpuShares: min(maxShares, max(minShares, l.MilliCPURequest*1024/1000)), MemoryLimitInBytes: l.Memory}
	if l.MilliCPU > 0 {
		resources.CpuQuota = max(minQuota, l.MilliCPU*cpuPeriod/1000)
	}
	return resources
}

// oomScore is how likely the kernel kills a container when the machine is out of memory: by quality of service, and among burstable pods by
// how little memory they ask for.
func oomScore(pod *v1.Pod, c *v1.Container) int64 {
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= 2_000_001_000 { // system-node-critical
		return oomCritical
	}
	switch podstatus.QOSClass(pod) {
	case v1.PodQOSGuaranteed:
		return oomCritical
	case v1.PodQOSBestEffort:
		return 1000
	}
	total := machineMemory()
	if total == 0 {
		return 999
	}
	score := 1000 - 1000*c.Resources.Requests.Memory().Value()/total
	return min(999, max(1000+oomCritical, score))
}

// machineMemory is how much memory the machine has, 0 if that is not known.
var machineMemory = sync.OnceValue(func() int64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kilobytes int64
		if _, err := fmt.Sscanf(lines.Text(), "MemTotal: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	return 0
})

// ResizeContainer implements [runtime.Resizer]. The group of the pod has the sum of its containers, so it changes too.
func (r *Runtime) ResizeContainer(ctx context.Context, id string, resources v1.ResourceRequirements) error {
	c, state, err := r.lookup(id)
	if err != nil {
		return err
	}
	if state != runtime.Running {
		return fmt.Errorf("cri: resize %s: %w", id, runtime.ErrNotRunning)
	}
	p, err := r.place(c.uid)
	if err == nil {
		err = r.checkMemory(p, c, resources.Limits.Memory().Value())
	}
	if err == nil {
		err = r.reallocate(p, c.view.Name, &resources, func() error { return r.update(ctx, c, &resources) })
	}
	if err != nil {
		return fmt.Errorf("cri: resize %s: %w", id, err)
	}
	return nil
}

// checkMemory refuses to lower a memory limit below what the container uses: the kernel would end the container at once.
func (r *Runtime) checkMemory(p *pod, c *container, limit int64) error {
	has := podstatus.FindContainer(r.allocated(p), c.view.Name)
	if has == nil || limit == 0 {
		return nil
	}
	if old := has.Resources.Limits.Memory().Value(); old != 0 && old <= limit {
		return nil
	}
	memory, measured := cgroup.MemoryOf(r.groups.of(p.manifest, c.id))
	if measured && memory.Usage >= uint64(limit) {
		return fmt.Errorf("cannot decrease memory limits: attempting to set container %q memory limit (%d) below current usage (%d)", c.view.Name, limit, memory.Usage)
	}
	return nil
}

// reallocate gives a container other resources by a change, and its pod those that follow.
func (r *Runtime) reallocate(p *pod, name string, resources *v1.ResourceRequirements, change func() error) error {
	p.resizing.Lock()
	defer p.resizing.Unlock()
	before := r.allocated(p)
	has := podstatus.FindContainer(before, name)
	if has == nil || equality.Semantic.DeepEqual(&has.Resources, resources) { // an ephemeral container has none
		return change()
	}
	if err := r.groups.resizePod(before, withResources(before, name, *resources), change); err != nil {
		return err
	}
	r.mu.Lock()
	resized := maps.Clone(p.resized)
	if resized == nil {
		resized = map[string]v1.ResourceRequirements{}
	}
	resized[name] = *resources.DeepCopy()
	p.resized = resized
	r.mu.Unlock()
	r.groups.weighBurstable(r.active)
	return r.save(p)
}

// update has the container runtime change the limits of a container.
func (r *Runtime) update(ctx context.Context, c *container, resources *v1.ResourceRequirements) error {
	bounded, cancel := r.ask(ctx)
	defer cancel()
	_, err := r.cri.UpdateContainerResources(bounded, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.id, Linux: limitsOf(resources)})
	return err
}

// allocated is the pod with the resources that its containers have.
func (r *Runtime) allocated(p *pod) *v1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.allocated()
}

// allocated needs Runtime.mu.
func (p *pod) allocated() *v1.Pod {
	manifest := p.manifest
	for name, resources := range p.resized {
		manifest = withResources(manifest, name, resources)
	}
	return manifest
}

// withResources is a copy of the pod in which a container has other resources.
func withResources(pod *v1.Pod, name string, resources v1.ResourceRequirements) *v1.Pod {
	pod = pod.DeepCopy()
	if c := podstatus.FindContainer(pod, name); c != nil {
		c.Resources = resources
	}
	return pod
}

// active are the pods that use resources of the node.
func (r *Runtime) active() (all []*v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if !p.released {
			all = append(all, p.allocated())
		}
	}
	return all
}
