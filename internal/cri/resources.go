package cri

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

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

// ResizeContainer implements [runtime.Resizer].
func (r *Runtime) ResizeContainer(ctx context.Context, id string, resources v1.ResourceRequirements) error {
	c, state, err := r.lookup(id)
	if err != nil {
		return err
	}
	if state != runtime.Running {
		return fmt.Errorf("cri: resize %s: %w", id, runtime.ErrNotRunning)
	}
	bounded, cancel := r.ask(ctx)
	defer cancel()
	_, err = r.cri.UpdateContainerResources(bounded, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.id, Linux: limitsOf(&resources)})
	if err != nil {
		return fmt.Errorf("cri: resize %s: %w", id, err)
	}
	return nil
}
