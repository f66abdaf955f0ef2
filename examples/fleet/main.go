// Command fleet is many nodes in one process, whose pods run in name only: fleet KUBECONFIG PREFIX NUMBER.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/node/fleet"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	number, err := strconv.Atoi(os.Args[3])
	check(err)
	client, leases, err := fleet.Clients(config)
	check(err)
	nodes, err := fleet.New(fleet.Options{Client: client, Leases: leases})
	check(err)
	for i := range number {
		_, err := nodes.Add(fleet.NodeOptions{Options: node.Options{Name: fmt.Sprint(os.Args[2], i)}, Handler: handler{nodes.Manager()}})
		check(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	check(nodes.Run(ctx))
}

// handler runs the pods of a node.
type handler struct{ manager *status.Manager }

// SyncPod starts the containers of a pod, or ends them if the pod is deleted.
func (h handler) SyncPod(_ context.Context, pod *v1.Pod) {
	deleted := pod.DeletionTimestamp != nil
	facts := podstatus.Facts{Sandbox: !deleted, Ended: deleted, IPs: []string{"192.0.2.1"}}
	for _, c := range pod.Spec.Containers {
		attempt := podstatus.Attempt{Container: c.Name, ID: "example://" + string(pod.UID) + c.Name, State: podstatus.AttemptRunning, StartedAt: pod.CreationTimestamp.Time}
		if deleted {
			attempt.State, attempt.FinishedAt = podstatus.AttemptExited, time.Now()
		}
		facts.Attempts = append(facts.Attempts, attempt)
	}
	if _, err := h.manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now())); err != nil {
		log.Print(err)
	}
	if deleted {
		h.manager.TerminatePod(pod) // it may go
	}
}

// ForgetPod is called for a pod that is gone: there is nothing to release.
func (handler) ForgetPod(context.Context, *v1.Pod) {}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
