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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/upstream/lives/machine"
)

const (
	// settle is the time between the end of a pod and its deletion, so that late changes of its status
	// are seen.
	settle = 4 * time.Second
	// longest is how long one life may take.
	longest = 3 * time.Minute
)

type recordOptions struct {
	agent, out string
	runs       int
}

// record lets the pods live on a node of the agent, one after the other, and writes down each life.
func record(ctx context.Context, o recordOptions, names []string) error {
	lives, err := readLives(names)
	if err != nil {
		return err
	}
	if err := machine.Enter(o.agent); err != nil {
		return err
	}
	m, err := machine.New(ctx, o.agent)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	if err := furnish(ctx, client); err != nil {
		return err
	}
	out := filepath.Join(o.out, o.agent)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var failed []error
	for _, l := range lives {
		if err := recordRuns(ctx, stage{client: client, node: m, life: l}, out, o.runs); err != nil {
			failed = append(failed, fmt.Errorf("pod %s: %w", l.pod.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// furnish waits until the control plane has put into the namespace what each pod needs.
func furnish(ctx context.Context, client kubernetes.Interface) error {
	for {
		_, noAccount := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		_, noAuthority := client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if noAccount == nil && noAuthority == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), noAccount, noAuthority)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// recordRuns records a life several times and keeps the typical recording, and all kinds of events.
func recordRuns(ctx context.Context, s stage, out string, times int) error {
	var (
		runs  []recording
		kinds []string
		name  = s.life.pod.Name
	)
	for range times {
		r, err := recordLife(ctx, s)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d states\n%s\n", name, len(r), r)
		runs = append(runs, r)
		more, err := takeEvents(ctx, s.client, s.name())
		if err != nil {
			return err
		}
		kinds = append(kinds, more...)
	}
	slices.Sort(kinds)
	return errors.Join(
		os.WriteFile(filepath.Join(out, name+".txt"), []byte(typical(runs).String()), 0o644),
		writeEvents(filepath.Join(out, name+".events"), slices.Compact(kinds)),
	)
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

func recordLife(ctx context.Context, s stage) (recording, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("not over after %v", longest))
	defer cancel()
	if err := s.quiet(ctx); err != nil {
		return nil, err
	}
	events, watchError, err := watchRows(ctx, s.client, s.name())
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	played := make(chan error, 1)
	go func() { played <- play(ctx, s.life.steps, s.do) }()
	r, err := follow(ctx, events, s.life.lasts, s.end)
	if err != nil {
		return nil, err
	}
	if len(r) == 0 || !r[len(r)-1].state.equal(gone) {
		return nil, errors.Join(fmt.Errorf("the watch ended before the pod was gone, after:\n%s", r), context.Cause(ctx), watchError())
	}
	if err := <-played; err != nil {
		return nil, err
	}
	if err := s.clear(ctx); err != nil {
		return nil, err
	}
	return r, s.quiet(ctx)
}

// follow records until the pod is gone for good or the watch is over. follow calls end once: after the
// time that the life lasts, or when the pod has ended. A pod that is gone before may come again.
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
			if len(r) > 0 && r[len(r)-1].state.equal(gone) {
				return r, nil // by itself
			}
		case e, open := <-events:
			if !open {
				return r, nil
			}
			s := describe(e)
			if len(r) == 0 || !r[len(r)-1].state.equal(s) {
				r = append(r, moment{after: time.Since(start), state: s})
			}
			if s.equal(gone) && ended {
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
