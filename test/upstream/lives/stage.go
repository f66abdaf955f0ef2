package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/upstream/lives/machine"
)

// node is what steps do to a node.
type node interface {
	Manifests() string
	Restart(context.Context) error
	Reboot(context.Context) error
	Announce(shutdown bool) error
}

// stage is where one life takes place.
type stage struct {
	client kubernetes.Interface
	node   node
	life   life
}

// healthy is the condition in which statusd's guard says that the node's agent does its work.
const healthy v1.NodeConditionType = "KubeletHealthy"

// name is the pod's name in the API.
func (s stage) name() string {
	if s.life.static {
		return s.life.pod.Name + "-" + machine.NodeName
	}
	return s.life.pod.Name
}

func (s stage) manifest() string {
	return filepath.Join(s.node.Manifests(), s.life.pod.Name+".yaml")
}

func (s stage) begin(ctx context.Context) error {
	if s.life.static {
		return writeManifest(s.manifest(), s.life.pod)
	}
	return s.create(ctx, s.life.pod)
}

func (s stage) end(ctx context.Context) error {
	if s.life.static {
		return os.Remove(s.manifest())
	}
	return s.delete(ctx, s.life.pod, metav1.DeleteOptions{})
}

func (s stage) do(ctx context.Context, next step) error {
	switch next.verb {
	case "create", "delete":
		other, err := s.other(next.argument)
		if err != nil {
			return err
		}
		if next.verb == "create" {
			return s.create(ctx, other)
		}
		return s.delete(ctx, other, metav1.DeleteOptions{})
	case "resize":
		return s.resize(ctx, next.argument)
	case "outgrow":
		return s.outgrow(ctx, next.argument)
	case "edit":
		edited, ok := s.life.others[0].(*v1.Pod)
		if !ok {
			return errors.New("the second object of the file is not a pod")
		}
		return writeManifest(s.manifest(), edited)
	case "force":
		now := int64(0)
		return s.delete(ctx, s.life.pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
	case "again":
		return s.create(ctx, s.life.pod)
	case "restart":
		return s.node.Restart(ctx)
	case "reboot":
		return s.node.Reboot(ctx)
	case "shutdown":
		return s.node.Announce(true)
	}
	return fmt.Errorf("unknown verb %q", next.verb)
}

func (s stage) resize(ctx context.Context, patch string) error {
	_, err := s.client.CoreV1().Pods(namespace).Patch(ctx, s.name(), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
	return err
}

// outgrow resizes while the API takes the node for a larger one, which its agent soon corrects.
func (s stage) outgrow(ctx context.Context, patch string) error {
	const large = `{"status":{"capacity":{"cpu":"4"},"allocatable":{"cpu":"4"}}}`
	for {
		if _, err := s.client.CoreV1().Nodes().PatchStatus(ctx, machine.NodeName, []byte(large)); err != nil {
			return err
		}
		err := s.resize(ctx, patch)
		if !apierrors.IsForbidden(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s stage) other(name string) (runtime.Object, error) {
	for _, other := range s.life.others {
		if other.(metav1.Object).GetName() == name {
			return other, nil
		}
	}
	return nil, fmt.Errorf("no object %q in the pod's file", name)
}

func (s stage) create(ctx context.Context, object runtime.Object) error {
	var (
		core = s.client.CoreV1()
		err  error
	)
	switch o := object.(type) {
	case *v1.Pod:
		pod := o.DeepCopy()
		pod.Spec.NodeName = machine.NodeName
		_, err = core.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	case *v1.ConfigMap:
		_, err = core.ConfigMaps(namespace).Create(ctx, o, metav1.CreateOptions{})
	case *v1.Secret:
		_, err = core.Secrets(namespace).Create(ctx, o, metav1.CreateOptions{})
	default:
		err = fmt.Errorf("%T cannot be created", o)
	}
	return err
}

// delete is content with an object that is not there.
func (s stage) delete(ctx context.Context, object runtime.Object, options metav1.DeleteOptions) error {
	var (
		core = s.client.CoreV1()
		name = object.(metav1.Object).GetName()
		err  error
	)
	switch o := object.(type) {
	case *v1.Pod:
		err = core.Pods(namespace).Delete(ctx, name, options)
	case *v1.ConfigMap:
		err = core.ConfigMaps(namespace).Delete(ctx, name, options)
	case *v1.Secret:
		err = core.Secrets(namespace).Delete(ctx, name, options)
	default:
		err = fmt.Errorf("%T cannot be deleted", o)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// clear takes back what the steps have left: objects, and a shutdown.
func (s stage) clear(ctx context.Context) error {
	for _, other := range s.life.others {
		if err := s.delete(ctx, other, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	for _, next := range s.life.steps {
		if next.verb == "shutdown" {
			return s.node.Announce(false)
		}
	}
	return nil
}

// quiet waits until the node is as it was at first: ready, without pressure, without pods.
func (s stage) quiet(ctx context.Context) error {
	for {
		err := s.disquiet(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (s stage) disquiet(ctx context.Context) error {
	pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(pods.Items) > 0 {
		return fmt.Errorf("pod %s is still there", pods.Items[0].Name)
	}
	node, err := s.client.CoreV1().Nodes().Get(ctx, machine.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(node.Status.Conditions) == 0 {
		return errors.New("the node has no conditions")
	}
	for _, c := range node.Status.Conditions {
		want := v1.ConditionFalse // a pressure
		if c.Type == v1.NodeReady || c.Type == healthy {
			want = v1.ConditionTrue
		}
		if c.Status != want {
			return fmt.Errorf("the node's condition %s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
	return nil
}
