package main

import (
	"context"
	"fmt"
	"net"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/test/stock"
)

// lastCopies has the newest copy of each pod that a watch has shown, including deleted pods.
type lastCopies struct {
	node *stock.Node

	mu   sync.Mutex
	pods map[string]*v1.Pod
	gone map[string]bool
}

// followPods begins to watch the pods of the default namespace.
func followPods(ctx context.Context, n *stock.Node) (*lastCopies, error) {
	l := &lastCopies{node: n, pods: map[string]*v1.Pod{}, gone: map[string]bool{}}
	return l, l.again(ctx)
}

// again lists the pods and watches them until the server ends.
func (l *lastCopies) again(ctx context.Context) error {
	pods := l.node.Admin().CoreV1().Pods(metav1.NamespaceDefault)
	var list *v1.PodList
	if err := stock.Await(ctx, func() (err error) {
		list, err = pods.List(ctx, metav1.ListOptions{})
		return err
	}); err != nil {
		return err
	}
	for i := range list.Items {
		l.see(&list.Items[i], false)
	}
	events, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	go func() {
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*v1.Pod); ok {
				l.see(pod, event.Type == watch.Deleted)
			}
		}
	}()
	return nil
}

func (l *lastCopies) see(pod *v1.Pod, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[pod.Name], l.gone[pod.Name] = pod, gone
}

func (l *lastCopies) get(name string) *v1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pod := l.pods[name]; pod != nil {
		return pod
	}
	return &v1.Pod{}
}

// allOver is nil if each pod has ended, and those in deletion are gone.
func (l *lastCopies) allOver(want int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := 0
	for name, pod := range l.pods {
		ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
		if hasPrefix(pod, "deleted") && l.gone[name] || !hasPrefix(pod, "deleted") && ended {
			over++
		}
	}
	if over < want {
		return fmt.Errorf("%d of %d pods have ended", over, want)
	}
	return nil
}

// freePort is one of the loopback interface that was free just now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
