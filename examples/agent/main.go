// Command agent is a node agent in forty lines: it watches the pods bound to its node, says
// of each that it runs and is ready, and ends each that is deleted. What it runs them with
// is left out; keeping the API server told is done by package status.
//
//	go run ./examples/agent -kubeconfig FILE -node NAME
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
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
	config.QPS = -1 // the manager has its own limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	table := pods.New()
	manager, err := status.New(status.Options{
		Client: status.NewClient(client.CoreV1().RESTClient(), node),
		Pods:   table,
		QPS:    50,
	})
	if err != nil {
		return err
	}
	report := func(object any) {
		pod := object.(*v1.Pod)
		table.Set(pod)
		manager.ObservePod(pod)
		var err error
		if pod.DeletionTimestamp != nil {
			err = manager.TerminatePod(pod)
		} else {
			_, err = manager.SetPodStatus(pod, running(pod))
		}
		if err != nil {
			log.Print(err)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" + node }))
	defer factory.Shutdown()
	handler := cache.ResourceEventHandlerFuncs{AddFunc: report, UpdateFunc: func(_, object any) { report(object) }}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(handler); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return manager.Run(ctx)
}

// running is the status of a pod whose containers all run and are ready.
func running(pod *v1.Pod) v1.PodStatus {
	s := v1.PodStatus{Phase: v1.PodRunning}
	for _, c := range pod.Spec.Containers {
		started := true
		s.ContainerStatuses = append(s.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}},
		})
	}
	s.Conditions = []v1.PodCondition{
		podstatus.Initialized(pod, &pod.Status, s.ContainerStatuses, s.Phase),
		podstatus.Ready(pod, pod.Status.Conditions, s.ContainerStatuses, s.Phase),
		podstatus.ContainersReady(pod, s.ContainerStatuses, s.Phase),
	}
	return s
}
