package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// settle is how long a pod that has ended is left alone before it is deleted, so
	// that late changes of its status are seen.
	settle = 4 * time.Second
	// longest is how long one life may take.
	longest = 3 * time.Minute
)

type recordOptions struct {
	kubeconfig, node, manifests, out string
	runs                             int
}

// record lets the pods live on the node, one after the other, and writes down each life.
func record(ctx context.Context, o recordOptions, names []string) error {
	lives, err := readLives(names)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace: %w", err)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, l := range lives {
		if err := recordRuns(ctx, client, o, l); err != nil {
			return fmt.Errorf("pod %s: %w", l.pod.Name, err)
		}
	}
	return nil
}

// recordRuns records a life several times and keeps the typical recording.
func recordRuns(ctx context.Context, client kubernetes.Interface, o recordOptions, l life) error {
	var runs []recording
	for range o.runs {
		r, err := recordLife(ctx, client, o, l)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d states\n%s\n", l.pod.Name, len(r), r)
		runs = append(runs, r)
	}
	return os.WriteFile(filepath.Join(o.out, l.pod.Name+".txt"), []byte(typical(runs).String()), 0o644)
}

// typical is the life that was lived most often, of several such the one with the most
// states: an agent that is busy may go from one state to the next but one.
func typical(runs []recording) recording {
	var (
		best  recording
		votes int
	)
	for _, r := range runs {
		n := 0
		for _, other := range runs {
			if slices.EqualFunc(r, other, func(a, b moment) bool { return a.state.equal(b.state) }) {
				n++
			}
		}
		if n > votes || n == votes && len(r) > len(best) {
			best, votes = r, n
		}
	}
	return best
}

func recordLife(ctx context.Context, client kubernetes.Interface, o recordOptions, l life) (recording, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("not gone after %v", longest))
	defer cancel()
	s := stageFor(client, o, l)
	events, watchError, err := watchRows(ctx, client, s.name)
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	r, err := follow(ctx, events, l.lasts, s.end)
	if err != nil {
		return nil, err
	}
	if len(r) == 0 || !r[len(r)-1].state.equal(gone) {
		return nil, errors.Join(fmt.Errorf("the watch ended before the pod was gone, after:\n%s", r), context.Cause(ctx), watchError())
	}
	return r, nil
}

// stage is how a life begins and is ended.
type stage struct {
	name  string // of the pod in the API
	begin func(context.Context) error
	end   func(context.Context) error
}

func stageFor(client kubernetes.Interface, o recordOptions, l life) stage {
	if l.static {
		file := filepath.Join(o.manifests, l.pod.Name+".yaml")
		return stage{
			name:  l.pod.Name + "-" + o.node,
			begin: func(context.Context) error { return writeManifest(file, l.pod) },
			end:   func(context.Context) error { return os.Remove(file) },
		}
	}
	pods := client.CoreV1().Pods(namespace)
	l.pod.Spec.NodeName = o.node
	return stage{
		name: l.pod.Name,
		begin: func(ctx context.Context) error {
			_, err := pods.Create(ctx, l.pod, metav1.CreateOptions{})
			return err
		},
		end: func(ctx context.Context) error { return pods.Delete(ctx, l.pod.Name, metav1.DeleteOptions{}) },
	}
}

// follow records until the pod is gone or the watch is over. It calls end once: after the
// time that the life lasts, or when the pod has ended.
func follow(ctx context.Context, events <-chan event, lasts time.Duration, end func(context.Context) error) (recording, error) {
	var (
		r     recording
		start = time.Now()
		due   <-chan time.Time
		ended bool
	)
	if lasts > 0 {
		due = time.After(lasts)
	}
	for {
		select {
		case <-due:
			due, ended = nil, true
			if err := end(ctx); err != nil {
				return r, err
			}
		case e, open := <-events:
			if !open {
				return r, nil
			}
			s := describe(e)
			if len(r) == 0 || !r[len(r)-1].state.equal(s) {
				r = append(r, moment{after: time.Since(start), state: s})
			}
			if s.equal(gone) {
				return r, nil
			}
			if over(e.pod) && due == nil && !ended {
				due = time.After(settle)
			}
		}
	}
}

func over(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}
