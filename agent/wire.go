package agent

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/eviction"
	"github.com/statusd/statusd/fit"
	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/mirror"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/probe"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/source"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/worker"
)

// safety answers for the workers, which are made after the manager that asks them.
type safety struct{ workers *worker.Workers }

func (s *safety) CouldHaveRunningContainers(pod *v1.Pod) bool {
	return s.workers.CouldHaveRunningContainers(pod)
}

// wire makes the parts and connects them.
func (a *Agent) wire() error {
	origins := []source.Origin{source.FromFile}
	if a.client != nil {
		origins = append(origins, source.FromAPI)
	}
	a.table = pods.New()
	a.dispatcher = newDispatcher(a.table, origins...)
	a.handle = source.Serial(a.dispatcher.handle)
	a.events = daemon.NewEvents(a.nodeName, a.client, a.log)
	a.wireHistory()
	if err := a.wirePods(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if a.client != nil {
		if err := a.wireNode(); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	}
	if err := a.wireSources(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a.wireShutdown()
	if err := a.wireEviction(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if err := a.wireServer(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if err := a.wireMachine(); err != nil {
		return err
	}
	if err := a.wireGuard(); err != nil {
		return err
	}
	return a.wireQuery()
}

// wirePods makes what runs, probes and reports pods.
func (a *Agent) wirePods() (err error) {
	safety := &safety{}
	options := status.Options{
		Pods:       a.table,
		Safety:     safety,
		Journal:    a.journal,
		QPS:        a.config.StatusUpdates.QPS,
		Burst:      a.config.StatusUpdates.Burst,
		Logger:     a.log,
		Observer:   &a.changes,
		Registerer: a.registerer,
		HistoryChanged: func() {
			if a.api != nil {
				a.api.Relist()
			}
		},
	}
	if a.client != nil {
		options.Client = status.NewClient(a.client.CoreV1().RESTClient(), a.nodeName)
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
		Observer:      observed{a.history, a},
		Registerer:    a.registerer,
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
		Registerer:  a.registerer,
		Observer:    observed{a.history, a},
		Admit:       a.admit,
		HostIPs:     a.addresses,
		OnForgotten: a.dispatcher.release,
		Version:     a.options.Version,
		Logger:      a.log,
	})
	safety.workers = a.workers
	a.dispatcher.manager, a.dispatcher.workers = a.manager, a.workers
	return err
}

// wireNode makes what keeps the Node and the mirror pods in the API.
func (a *Agent) wireNode() (err error) {
	options := a.nodeOptions()
	options.Pressure = func() []v1.NodeConditionType { return a.evictions.Conditions() }
	options.RuntimeVersion = a.runtime.Version()
	options.Event = a.events.NodeEvent
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
			Rescan:    a.config.ManifestsRescan,
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
	here, err := a.here()
	if err != nil {
		return &fit.Rejection{Reason: "UnexpectedAdmissionError", Message: err.Error()}
	}
	return fit.Rules{SharedPorts: runtime.SharesHostNetwork(a.runtime)}.Check(here, pod, active)
}

// endpoints are what the agent serves, if it serves anything.
func (a *Agent) endpoints() *daemon.Endpoints {
	e := &daemon.Endpoints{Alive: a.alive, Pending: func() any { return a.pending() }, Metrics: a.metrics, Query: a.query.Handler()}
	e.Ready = append(e.Ready, daemon.Check{Name: "journal", Err: a.journal.Writable})
	if a.manifests != nil {
		e.Ready = append(e.Ready, daemon.Check{Name: "manifests", Err: func() error {
			if !a.manifests.HasSynced() {
				return errors.New("the directory was not read yet")
			}
			return nil
		}})
	}
	if a.client != nil {
		e.Ready = append(e.Ready, daemon.Check{Name: "api", Err: a.apiProblem}, daemon.Check{Name: "node", Err: a.nodeProblem})
	}
	return e
}

func (a *Agent) apiProblem() error {
	if err := a.api.Err(); err != nil {
		return err
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
