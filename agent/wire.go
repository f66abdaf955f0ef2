package agent

import (
	"cmp"
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/mirror"
	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/node/probe"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/status"
)

// safety calls the workers, which are created after the manager.
type safety struct{ workers *worker.Workers }

func (s *safety) CouldHaveRunningContainers(pod *v1.Pod) bool {
	return s.workers.CouldHaveRunningContainers(pod)
}

// wire creates the parts and connects them.
func (a *Agent) wire() error {
	origins := []source.Origin{source.FromFile}
	if a.client != nil {
		origins = append(origins, source.FromAPI)
	}
	a.table = pods.New()
	a.dispatcher = newDispatcher(a.table, origins...)
	a.handle = source.Serial(a.dispatcher.handle)
	a.events = process.NewEvents(a.nodeName, a.client, a.log)
	a.events.Warned = a.warnings.add
	if announcer, ok := a.options.Observer.(interface{ Announce(types.UID) }); ok {
		a.dispatcher.changed = announcer.Announce
	}
	if err := a.wirePods(); err != nil {
		return err
	}
	if a.client != nil {
		if err := a.wireNode(); err != nil {
			return err
		}
	}
	if err := a.wireSources(); err != nil {
		return err
	}
	a.wireShutdown()
	if err := a.wireEviction(); err != nil {
		return err
	}
	return a.wireServer()
}

// observer wraps the observer of the program with the agent's own clean-up when a pod is removed.
type observer struct {
	status.Observer
	warnings *warnings
}

// Removed is called when the status of a pod is no longer kept.
func (o observer) Removed(uid types.UID, at time.Time) {
	o.warnings.forget(uid)
	o.Observer.Removed(uid, at)
}

// unobserved is the observer of a program that has none.
type unobserved struct{}

func (unobserved) Changed(podstatus.Change)              {}
func (unobserved) Accepted(types.UID, uint64, time.Time) {}
func (unobserved) Failed(podstatus.Undelivered)          {}
func (unobserved) Removed(types.UID, time.Time)          {}

// wirePods creates the parts that run, probe and report pods.
func (a *Agent) wirePods() (err error) {
	safety := &safety{}
	probes, _ := a.options.Observer.(probe.Observer)
	steps, _ := a.options.Observer.(worker.Observer)
	options := status.Options{
		Pods:       a.table,
		Safety:     safety,
		Journal:    a.journal,
		QPS:        a.config.StatusUpdates.QPS,
		Logger:     a.log,
		Observer:   observer{a.options.Observer, &a.warnings},
		Registerer: a.metrics,
		HistoryChanged: func() {
			if a.api != nil {
				a.api.Relist()
			}
		},
	}
	if a.client != nil {
		options.Client = status.NewClient(a.client.CoreV1(), a.nodeName)
	}
	if a.manager, err = status.New(options); err != nil {
		return err
	}
	a.prober, err = probe.New(probe.Options{
		Exec:   newExecer(a.runtime).run,
		Status: a.manager,
		Unhealthy: func(f probe.Failure) {
			a.workers.ContainerUnhealthy(f.Pod, f.ContainerID, f.Kind)
		},
		Sync:          func(uid types.UID) { a.workers.Sync(uid) },
		Recorder:      a.events,
		Observer:      probes,
		Registerer:    a.metrics,
		PodRegisterer: a.kubelet.probes,
		Version:       a.options.Version,
		Logger:        a.log,
	})
	if err != nil {
		return err
	}
	a.workers, err = worker.New(worker.Options{
		Runtime:     a.runtime,
		Status:      reporter{a.manager, a.manager.Resizes()},
		Prober:      a.prober,
		Recorder:    a.events,
		Registerer:  a.metrics,
		Observer:    steps,
		Admit:       a.admit,
		HostIPs:     a.addresses,
		OnForgotten: a.dispatcher.release,
		Memory:      &a.options.Memory.workers,
		Version:     a.options.Version,
		Logger:      a.log,
	})
	safety.workers = a.workers
	a.dispatcher.manager, a.dispatcher.workers = a.manager, a.workers
	return err
}

// wireNode creates the parts that maintain the Node and the mirror pods in the API.
func (a *Agent) wireNode() (err error) {
	options := a.nodeOptions()
	options.Pressure = func() []v1.NodeConditionType { return a.evictions.Conditions() }
	options.RuntimeVersion = a.runtime.Version()
	options.Event = a.events.NodeEvent
	options.Instance, options.InstanceEnded = a.instance(), a.instanceEnded
	options.Memory = a.options.Memory.nodeOf(a.nodeName, a.apiServer, a.config.StateDir)
	if store, ok := a.runtime.(runtime.ImageStore); ok {
		options.Images = store.Images
	}
	if a.node, err = node.New(options); err != nil {
		return err
	}
	a.mirrors, err = mirror.New(mirror.Options{
		Client:   a.client,
		NodeName: a.nodeName,
		NodeUID:  a.node.UID,
		InUse:    a.dispatcher.isLeaving,
		Logger:   a.log,
	})
	a.dispatcher.mirrors = a.mirrors
	return err
}

func (a *Agent) wireSources() (err error) {
	if a.config.Manifests != "" {
		a.manifests, err = source.NewManifests(source.ManifestsOptions{
			Directory: a.config.Manifests,
			NodeName:  a.nodeName,
			Handle:    a.handle,
			Logger:    a.log,
		})
		if err != nil {
			return err
		}
	}
	if a.client != nil {
		a.api, err = source.NewAPI(source.APIOptions{Client: a.client, NodeName: a.nodeName, Handle: a.handle, Logger: a.log})
	}
	return err
}

// admit decides whether a pod fits on this node.
func (a *Agent) admit(pod *v1.Pod, active []*v1.Pod) *fit.Rejection {
	if a.shutdown.Err() != nil && !podstatus.IsStatic(pod) {
		return &fit.Rejection{Reason: reasonRefused, Message: messageRefused}
	}
	if message := a.evictions.Admit(pod); message != "" {
		return &fit.Rejection{Reason: eviction.Reason, Message: message}
	}
	if gate, ok := a.runtime.(runtime.Gate); ok {
		if reason, message := gate.Admit(pod); reason != "" {
			return &fit.Rejection{Reason: reason, Message: message}
		}
	}
	here, err := a.here()
	if err != nil {
		return &fit.Rejection{Reason: "UnexpectedAdmissionError", Message: err.Error()}
	}
	r := fit.Check(here, pod, active)
	if r != nil && (r.Reason == fit.ReasonNodeAffinity || r.Reason == fit.ReasonTaint) && a.node != nil {
		// An administrator may have just labeled the node, and the scheduler has the label already.
		if current, err := a.node.Look(context.Background()); err == nil {
			r = fit.Check(asShown(here, current), pod, active)
		}
	}
	return r
}

// endpoints returns the endpoints of the agent, if they are served.
func (a *Agent) endpoints() *process.Endpoints {
	e := &process.Endpoints{Alive: a.alive, Pending: func() any { return a.pending() }, Metrics: a.metrics}
	e.Ready = append(e.Ready, process.Check{Name: "journal", Err: a.journal.Writable})
	if a.manifests != nil {
		e.Ready = append(e.Ready, process.Check{Name: "manifests", Err: func() error {
			if !a.manifests.HasSynced() {
				return errors.New("the directory was not read yet")
			}
			return nil
		}})
	}
	if a.client != nil {
		e.Ready = append(e.Ready, process.Check{Name: "api", Err: a.apiProblem}, process.Check{Name: "node", Err: a.nodeProblem})
	}
	return e
}

func (a *Agent) apiProblem() error {
	if err := a.api.Err(); err != nil {
		return err
	}
	select {
	case <-a.node.Claimed():
	default:
		return cmp.Or(a.node.Err(), errors.New("the node was not looked at yet"))
	}
	if !a.api.HasSynced() {
		return errors.New("the pods of this node were not listed yet")
	}
	return nil
}

func (a *Agent) nodeProblem() error {
	if err := a.node.Err(); err != nil {
		return err
	}
	if a.node.UID() == "" {
		return errors.New("the node is not registered yet")
	}
	return nil
}
