// Command batch reports the jobs of a batch system as the pods of a node: batch KUBECONFIG NODE.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	core := kubernetes.NewForConfigOrDie(config).CoreV1()
	manager, err := status.New(status.Options{Client: status.NewClient(core, os.Args[2])})
	check(err)
	go manager.Run(context.Background()) // until Shutdown
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	check(run(ctx, manager, cache.NewListWatchFromClient(core.RESTClient(), "pods", "", fields.OneTermEqualSelector("spec.nodeName", os.Args[2]))))
}

// run reports the job of each pod until the context ends, and then what the API server does not have yet.
func run(ctx context.Context, manager *status.Manager, watch cache.ListerWatcher) error {
	pods := cache.NewSharedInformer(watch, &v1.Pod{}, 0)
	pods.AddEventHandler(manager.EventHandler()) // deleted pods are forgotten
	go pods.RunWithContext(ctx)
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		for _, object := range pods.GetStore().List() {
			pod := object.(*v1.Pod)
			job := query(pod)
			ended := job.State == podstatus.AttemptExited
			facts := podstatus.Facts{Attempts: []podstatus.Attempt{job}, Sandbox: !ended, Ended: ended}
			if _, err := manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now())); err != nil {
				log.Print(err)
			}
			if ended {
				manager.TerminatePod(pod) // if a user has deleted it, it may go now
			}
		}
	}
	deadline, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return manager.Shutdown(deadline)
}

// query stands for the batch system: each job takes a second, or ends when its pod is deleted.
func query(pod *v1.Pod) podstatus.Attempt {
	job := podstatus.Attempt{Container: pod.Spec.Containers[0].Name, ID: "batch://" + string(pod.UID), State: podstatus.AttemptRunning, StartedAt: pod.CreationTimestamp.Time}
	if job.FinishedAt = job.StartedAt.Add(time.Second); time.Now().After(job.FinishedAt) || pod.DeletionTimestamp != nil {
		job.State = podstatus.AttemptExited
	}
	return job
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
