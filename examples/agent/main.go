// Command agent is a node agent in about eighty lines: it watches the pods bound to its node, says
// of each that it runs and is ready, and ends each that is deleted. What it runs them with
// is left out; package status does the reporting.
//
//	go run ./examples/agent -kubeconfig FILE -node NAME
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"slices"
	"syscall"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	node := flag.String("node", "", "the node whose pods this agent has")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, config, *node); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, config *rest.Config, node string) error {
	a, err := newAgent(config, node)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// agent is the node: its pods, and what reports them.
type agent struct {
	node    string
	client  kubernetes.Interface
	table   *pods.Table
	manager *status.Manager
}

func newAgent(config *rest.Config, node string) (*agent, error) {
	config.QPS = -1 // the manager has its own limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	table := pods.New()
	manager, err := status.New(status.Options{
		Client: status.NewClient(client.CoreV1().RESTClient(), node),
		Pods:   table,
		QPS:    50,
	})
	return &agent{node: node, client: client, table: table, manager: manager}, err
}

func (a *agent) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(a.client, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" + a.node }))
	defer factory.Shutdown()
	handler := cache.ResourceEventHandlerFuncs{AddFunc: a.report, UpdateFunc: func(_, object any) { a.report(object) }, DeleteFunc: a.forget}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(handler); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return a.manager.Run(ctx)
}

// report says how a pod is: that it runs, or that it has ended if it was deleted.
func (a *agent) report(object any) {
	pod := object.(*v1.Pod)
	a.table.Set(pod)
	a.manager.ObservePod(pod)
	var err error
	if pod.DeletionTimestamp != nil {
		err = a.manager.TerminatePod(pod)
	} else {
		_, err = a.manager.SetPodStatus(pod, running(pod))
	}
	if err != nil {
		log.Print(err)
	}
}

// forget is for a pod that is gone, also for one whose deletion the watch has missed.
func (a *agent) forget(object any) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if pod, ok := object.(*v1.Pod); ok {
		a.table.Remove(pod)
		a.manager.Forget(pod.UID)
	}
}

// running is the status of a pod whose containers all run and are ready. It has every condition
// that a node owns: one that is left out would be removed.
func running(pod *v1.Pod) v1.PodStatus {
	s := v1.PodStatus{Phase: v1.PodRunning}
	for _, c := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, containerStatus(pod, &c, podstatus.IsSidecar(&c)))
	}
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(pod, &c, true))
	}
	all := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	s.Conditions = []v1.PodCondition{
		podstatus.ReadyToStartContainers(pod, false),
		podstatus.Initialized(pod, &pod.Status, all, s.Phase),
		podstatus.Ready(pod, pod.Status.Conditions, all, s.Phase),
		podstatus.ContainersReady(pod, all, s.Phase),
		{Type: v1.PodScheduled, Status: v1.ConditionTrue, ObservedGeneration: pod.Generation},
	}
	return s
}

// containerStatus is that of a container that runs, or of an init container that has completed.
func containerStatus(pod *v1.Pod, c *v1.Container, runs bool) v1.ContainerStatus {
	status := v1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, Started: &runs}
	if runs {
		status.State.Running = &v1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}
	} else {
		status.State.Terminated = &v1.ContainerStateTerminated{Reason: "Completed", StartedAt: pod.CreationTimestamp, FinishedAt: pod.CreationTimestamp}
	}
	return status
}
