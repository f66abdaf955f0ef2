package kubeletapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/statusd/statusd/runtime"
)

// serveSummary serves /stats/summary.
func (s *Server) serveSummary(w http.ResponseWriter, request *http.Request, parameters []string) {
	if parameters[0] != "summary" {
		notFound(w, request)
		return
	}
	summary, err := s.summary(request.Context())
	if err != nil {
		answer(w, http.StatusInternalServerError, "Internal Error: "+err.Error())
		return
	}
	serveJSON(w, summary)
}

// summary measures the node and its pods. A pod that cannot be measured, or ends meanwhile, is left out.
func (s *Server) summary(ctx context.Context) (*stats.Summary, error) {
	if c := s.options.Containers; c != nil && c.Summary != nil {
		return c.Summary(ctx)
	}
	usage, err := s.options.Usage()
	if err != nil {
		return nil, err
	}
	s.rates.complete(&usage)
	summary := &stats.Summary{Node: stats.NodeStats{
		NodeName: s.options.NodeName, StartTime: metav1.NewTime(usage.BootedAt),
		CPU: &stats.CPUStats{Time: metav1.NewTime(usage.At), UsageCoreNanoSeconds: &usage.CPUNanoseconds, UsageNanoCores: usage.NanoCores},
		Memory: &stats.MemoryStats{
			Time: metav1.NewTime(usage.At), UsageBytes: &usage.MemoryUsage, WorkingSetBytes: &usage.MemoryWorkingSet,
			AvailableBytes: &usage.MemoryAvailable, RSSBytes: &usage.MemoryRSS,
		},
	}, Pods: []stats.PodStats{}}
	statser, can := s.options.Runtime.(runtime.Statser)
	if !can {
		return summary, nil
	}
	for _, pod := range s.options.Pods.All() {
		measured, err := statser.PodStats(ctx, pod.UID)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if !errors.Is(err, runtime.ErrNotFound) {
				s.log.Warn("pod not measured", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", err)
			}
			continue
		}
		if len(measured.Containers) == 0 {
			continue // it has ended, or nothing of it runs yet
		}
		summary.Pods = append(summary.Pods, podStats(pod, measured))
	}
	return summary, nil
}

func podStats(pod *v1.Pod, measured runtime.PodStats) stats.PodStats {
	result := stats.PodStats{
		PodRef:       stats.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)},
		StartTime:    metav1.NewTime(measured.StartedAt),
		CPU:          cpuStats(measured.At, measured.CPU),
		Memory:       memoryStats(measured.At, measured.Memory),
		ProcessStats: &stats.ProcessStats{ProcessCount: &measured.Processes},
		Containers:   []stats.ContainerStats{},
	}
	for _, c := range measured.Containers {
		logs := c.LogBytes
		result.Containers = append(result.Containers, stats.ContainerStats{
			Name: c.Name, StartTime: metav1.NewTime(c.StartedAt),
			CPU: cpuStats(c.At, c.CPU), Memory: memoryStats(c.At, c.Memory),
			Logs: &stats.FsStats{Time: metav1.NewTime(c.At), UsedBytes: &logs},
		})
	}
	for _, volume := range pod.Spec.Volumes {
		if used, ok := measured.VolumeBytes[volume.Name]; ok {
			result.VolumeStats = append(result.VolumeStats, stats.VolumeStats{
				Name: volume.Name, FsStats: stats.FsStats{Time: metav1.NewTime(measured.At), UsedBytes: &used},
			})
		}
	}
	return result
}

func cpuStats(at time.Time, cpu runtime.CPUStats) *stats.CPUStats {
	return &stats.CPUStats{Time: metav1.NewTime(at), UsageCoreNanoSeconds: &cpu.Nanoseconds, UsageNanoCores: cpu.NanoCores}
}

func memoryStats(at time.Time, memory runtime.MemoryStats) *stats.MemoryStats {
	return &stats.MemoryStats{
		Time: metav1.NewTime(at), UsageBytes: &memory.Usage, WorkingSetBytes: &memory.WorkingSet, RSSBytes: &memory.RSS,
		PageFaults: &memory.PageFaults, MajorPageFaults: &memory.MajorPageFaults,
	}
}

// rates makes the rate of the machine's CPUs of two readings.
type rates struct {
	mu     sync.Mutex // guards what follows
	before Usage
	rate   *uint64
}

// shortestRate is the time between two readings below which a rate says little.
const shortestRate = time.Second

func (r *rates) complete(now *Usage) {
	if now.NanoCores != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	passed := now.At.Sub(r.before.At)
	if r.before.At.IsZero() || now.CPUNanoseconds < r.before.CPUNanoseconds {
		r.before, r.rate = *now, nil
	} else if passed >= shortestRate {
		rate := uint64(float64(now.CPUNanoseconds-r.before.CPUNanoseconds) / passed.Seconds())
		r.before, r.rate = *now, &rate
	}
	now.NanoCores = r.rate
}
