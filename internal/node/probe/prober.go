package probe

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Prober probes the containers of the pods that were added to it.
type Prober struct {
	opts  Options
	check func(context.Context, question) answer
	count *metrics
	byPod *podMetrics
	// born separates containers started under this process from containers that ran before.
	born time.Time
	// wake has capacity 1: Run looks at everything that is due when it is woken.
	wake chan struct{}

	mu   sync.Mutex // guards what follows, and all that can be reached from it
	pods map[types.UID]*pod
	due  []*task // begun, and not yet taken up by Run
}

// New checks the options and makes a prober. New starts nothing.
func New(options Options) (*Prober, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	options.setDefaults()
	count := newMetrics()
	if err := count.register(options.Registerer); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	byPod := newPodMetrics()
	if err := byPod.register(options.PodRegisterer); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return &Prober{
		byPod: byPod,
		opts:  options,
		count: count,
		check: newChecker(options.Exec, options.Version).check,
		born:  time.Now(),
		wake:  make(chan struct{}, 1),
		pods:  make(map[types.UID]*pod),
	}, nil
}

// Run probes until ctx ends, and returns when no probe is in progress. Run may be called
// once.
func (p *Prober) Run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for {
		p.launch(ctx, &tasks)
		select {
		case <-p.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *Prober) launch(ctx context.Context, tasks *sync.WaitGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.due {
		if t.ended {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		t.cancel = cancel
		tasks.Go(func() {
			defer cancel()
			p.perform(ctx, t)
		})
	}
	p.due = nil
}

// AddPod starts probing the containers of the pod, both running ones and later ones that
// [Prober.UpdatePodStatus] reports. AddPod may be called again for the same pod.
func (p *Prober) AddPod(manifest *v1.Pod) {
	reported, isReported := p.opts.Status.GetPodStatus(manifest.UID)
	p.mu.Lock()
	defer p.mu.Unlock()
	known, isKnown := p.pods[manifest.UID]
	if !isKnown {
		known = &pod{runs: make(map[string]*run)}
		p.pods[manifest.UID] = known
	}
	known.manifest = manifest
	if manifest.DeletionTimestamp != nil {
		known.stopDangerous()
	}
	if !isKnown && isReported {
		p.observe(known, &reported)
	}
}

// UpdatePodStatus sets Started and Ready of each container of a status that is about to be reported
// (Q9 to Q12), and takes the running containers from it. For a container that was reported under
// the same ID before, Started and Ready must have the reported values; for any other container they
// must be unset.
func (p *Prober) UpdatePodStatus(manifest *v1.Pod, status *v1.PodStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.pods[manifest.UID]
	if known != nil {
		p.observe(known, status)
	}
	fill(manifest, status, func(spec *v1.Container, c *v1.ContainerStatus) results {
		if known != nil {
			if r := known.runs[c.Name]; r != nil {
				return r.results
			}
		}
		return firstResults(spec, c)
	})
}

// StopLivenessAndStartup ends the probes whose failure would stop a container of the pod,
// since its containers are being stopped. Readiness is probed until they have stopped (Q14).
// A container that has not started by then is not reported as started.
func (p *Prober) StopLivenessAndStartup(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.pods[uid]; known != nil {
		known.stopDangerous()
	}
}

// RemovePod ends all probes of the pod and forgets their results.
func (p *Prober) RemovePod(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.pods[uid]
	if known == nil {
		return
	}
	for _, r := range known.runs {
		r.end()
	}
	delete(p.pods, uid)
	p.byPod.forget(known.manifest)
}
