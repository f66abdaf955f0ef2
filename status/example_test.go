package status_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
)

// One pod is reported as running, and then as ended. Here the API server is a fake.
func Example() {
	fake := statustest.New()
	server := httptest.NewServer(fake)
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	clientset := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, Transport: transport})
	pod := fake.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"},
		Spec:       v1.PodSpec{NodeName: "batch", RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	})
	ctx := context.Background()
	done := make(chan error)

	// README:
	manager, err := status.New(status.Options{
		Client: status.NewClient(clientset.CoreV1(), "batch"), // the name of the node
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() { done <- manager.Run(ctx) }()

	// An informer of the node's pods makes them known and, once they are deleted, forgotten:
	//	informer.AddEventHandler(manager.EventHandler())
	manager.ObservePod(pod)

	// Whenever something happens to a pod, say what you know. The rest is completed.
	job := podstatus.Attempt{Container: "main", ID: "batch://4711", State: podstatus.AttemptRunning, StartedAt: time.Now()}
	facts := podstatus.Facts{Attempts: []podstatus.Attempt{job}, Sandbox: true}
	manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now()))
	manager.Flush(ctx) // wait until the API server has it
	// :README
	fmt.Println(fake.Pod(pod).Status.Phase)

	job.State, job.FinishedAt = podstatus.AttemptExited, time.Now()
	facts = podstatus.Facts{Attempts: []podstatus.Attempt{job}, Ended: true}
	manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now()))
	manager.TerminatePod(pod)
	manager.Flush(ctx)
	end := fake.Pod(pod).Status
	fmt.Println(end.Phase, end.ContainerStatuses[0].State.Terminated.Reason)

	fmt.Println(manager.Shutdown(ctx), <-done)
	// Output:
	// Running
	// Succeeded Completed
	// <nil> <nil>
}

// Reporters of different parts may share a manager; here a prober withdraws a pod from its services.
func ExampleManager_SetContainerReadiness() {
	manager, err := status.New(status.Options{}) // without a client nothing is sent
	if err != nil {
		log.Fatal(err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
	}
	manager.ObservePod(pod)
	facts := podstatus.Facts{Attempts: []podstatus.Attempt{{Container: "main", ID: "vm://1", State: podstatus.AttemptRunning}}}
	manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now()))

	manager.SetContainerReadiness(pod.UID, "vm://1", false)
	now, _ := manager.GetPodStatus(pod.UID)
	ready := podstatus.FindCondition(now.Conditions, v1.PodReady)
	fmt.Println(now.Phase, ready.Status, ready.Reason)
	// Output: Running False ContainersNotReady
}

// database stands for the one that a program has already.
type database map[types.UID]podstatus.Final

func (d database) Finals() map[types.UID]podstatus.Final { return maps.Clone(d) }

func (d database) SetFinal(uid types.UID, final podstatus.Final) error {
	if final.Name == "" {
		delete(d, uid)
	} else {
		d[uid] = final
	}
	return nil
}

// The end of a job that the API server did not get before the program ended is sent by the next one.
func ExampleEnds() {
	jobs := database{}
	fake := statustest.New()
	pod := fake.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"},
		Spec:       v1.PodSpec{NodeName: "batch", Containers: []v1.Container{{Name: "main"}}},
	})
	first, _ := status.New(status.Options{Client: fake, Journal: jobs})
	first.ObservePod(pod)
	first.SetPodStatus(pod, v1.PodStatus{Phase: v1.PodSucceeded})

	second, _ := status.New(status.Options{Client: fake, Journal: jobs})
	if err := second.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(fake.Pod(pod).Status.Phase, len(jobs))
	// Output: Succeeded 1
}
