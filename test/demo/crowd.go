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

	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/test/campaign"
)

// crowd is many pods that do nothing, on a control plane and a statusd of their own.
type crowd struct {
	*demo
	size   int
	admin  kubernetes.Interface
	daemon *daemon
}

// withCrowd starts everything in a fresh directory, creates the pods, waits until all are
// ready, and leaves nothing behind.
func (d *demo) withCrowd(ctx context.Context, size int, controllers bool, use func(*crowd) error) error {
	configure := func(config *run.Config) error {
		config.Node.MaxPods = size
		return nil
	}
	return d.withNode(ctx, controllers, configure, func(c *crowd) error {
		c.size = size
		if err := c.start(ctx); err != nil {
			return err
		}
		return use(c)
	})
}

// withNode starts a control plane and a statusd without pods in a fresh directory, and leaves nothing behind.
func (d *demo) withNode(ctx context.Context, controllers bool, configure func(*run.Config) error, use func(*crowd) error) (err error) {
	dir, err := os.MkdirTemp("", "statusd-crowd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d.state = dir
	server, admin, err := d.startControlPlane(ctx, controllers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopControlPlane(ctx, server)) }()
	config, err := d.config("statusd")
	if err != nil {
		return err
	}
	if config.Kubeconfig, err = server.NodeKubeconfig(nodeName); err != nil {
		return err
	}
	config.Manifests = ""
	if err := configure(&config); err != nil {
		return err
	}
	c := &crowd{demo: d, admin: admin}
	if c.daemon, err = d.startStatusd(config); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopStatusd(ctx, c.daemon)) }()
	return use(c)
}

func (c *crowd) start(ctx context.Context) error {
	begin, no := time.Now(), false
	for i := range c.size {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("idle-%03d", i), Namespace: metav1.NamespaceDefault},
			Spec: v1.PodSpec{
				NodeName:                     nodeName,
				AutomountServiceAccountToken: &no,
				Containers:                   []v1.Container{{Name: "main", Image: process.Image, Command: []string{"sleep", "1000000"}}},
			},
		}
		if _, err := c.admin.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	c.say("created %d pods in %s", c.size, since(begin))
	if err := c.await(ctx, func(pods []v1.Pod) bool { return len(pods) == c.size && !slices.ContainsFunc(pods, isNotReady) }); err != nil {
		return err
	}
	c.say("all of them ready %s after the first was created", since(begin))
	return nil
}

func isNotReady(pod v1.Pod) bool {
	return !slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// await looks at the pods until they are as wanted.
func (c *crowd) await(ctx context.Context, wanted func([]v1.Pod) bool) error {
	return c.daemon.await(ctx, func() error {
		list, err := c.admin.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || wanted(list.Items) {
			return err
		}
		ready := len(list.Items) - len(slices.DeleteFunc(slices.Clone(list.Items), func(pod v1.Pod) bool { return !isNotReady(pod) }))
		campaign.Out.Set("%d of %d pods are ready", ready, len(list.Items))
		return errors.New("the pods are not as wanted")
	})
}

const scaleSize = 500

// scale starts 500 pods, deletes them, and looks for their remains.
func (d *demo) scale(ctx context.Context) error {
	return d.withCrowd(ctx, scaleSize, withoutControllers, func(c *crowd) error {
		if _, err := c.usage(); err != nil {
			return err
		}
		begin := time.Now()
		grace := int64(2)
		err := c.admin.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &grace}, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := c.await(ctx, func(pods []v1.Pod) bool { return len(pods) == 0 }); err != nil {
			return err
		}
		c.say("deleted all of them in %s: none is left in the API", since(begin))
		return c.awaitNothingLeft(ctx)
	})
}

// awaitNothingLeft waits until statusd has cleared up: it does so when it hears that the
// pod is gone from the API, which is after we do.
func (c *crowd) awaitNothingLeft(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := c.daemon.await(ctx, func() error {
		left, err := c.left()
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left of the pods: %q", left)
		}
		return err
	})
	if err == nil {
		c.say("no process and no file of them is left")
	}
	return err
}

// left are the processes and directories of pods that are still there.
func (c *crowd) left() ([]string, error) {
	directories, err := filepath.Glob(filepath.Join(c.daemon.config.StateDir, "runtime", "pods", "*"))
	if err != nil {
		return nil, err
	}
	usage, err := c.usage()
	for _, shim := range usage.shims {
		directories = append(directories, fmt.Sprintf("process %d", shim.pid))
	}
	return directories, err
}

func since(begin time.Time) time.Duration { return time.Since(begin).Round(10 * time.Millisecond) }
